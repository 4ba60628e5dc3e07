import './organization/create-sub-organization.decisions.js';
import './organization/delete-sub-organization.decisions.js';
import './organization/release-contact.decisions.js';
import './organization/remove-organization-feature.decisions.js';
import './organization/set-organization-feature.decisions.js';
import './organization/update-organization-name.decisions.js';
import './organization/update-root-quorum.decisions.js';
