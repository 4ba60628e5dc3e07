import './signing/raw-payload-contents.decisions.js';
import './signing/sign-raw-payload.decisions.js';
import './signing/sign-raw-payloads.decisions.js';
import './signing/sign-transaction.decisions.js';
