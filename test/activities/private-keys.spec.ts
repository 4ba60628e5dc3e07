import './private-keys/create-private-key-tag.decisions.js';
import './private-keys/create-private-keys.decisions.js';
import './private-keys/delete-private-key-tags.decisions.js';
import './private-keys/delete-private-keys.decisions.js';
import './private-keys/export-private-key.decisions.js';
import './private-keys/import-private-key.decisions.js';
import './private-keys/init-import-private-key.decisions.js';
import './private-keys/update-private-key-tag.decisions.js';
