import './auth-proxy/disable-auth-proxy.decisions.js';
import './auth-proxy/enable-auth-proxy.decisions.js';
import './auth-proxy/update-auth-proxy-config.decisions.js';
