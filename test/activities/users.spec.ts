import './users/create-api-only-users.decisions.js';
import './users/create-users.decisions.js';
import './users/delete-users.decisions.js';
import './users/update-user-email.decisions.js';
import './users/update-user-name.decisions.js';
import './users/update-user-phone-number.decisions.js';
import './users/update-user.decisions.js';
