import './contract-interfaces/create-smart-contract-interface.decisions.js';
import './contract-interfaces/delete-smart-contract-interface.decisions.js';
