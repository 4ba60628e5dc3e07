import './policies/create-policies.decisions.js';
import './policies/create-policy.decisions.js';
import './policies/delete-policies.decisions.js';
import './policies/delete-policy.decisions.js';
import './policies/update-policy.decisions.js';
