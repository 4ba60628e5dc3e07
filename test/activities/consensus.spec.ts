import './consensus/approve-activity.decisions.js';
import './consensus/reject-activity.decisions.js';
