import './tags/create-user-tag.decisions.js';
import './tags/delete-user-tags.decisions.js';
import './tags/update-user-tag.decisions.js';
