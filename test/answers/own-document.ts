import { endpoints } from '../../src/auth-proxy/endpoints.js';
import { openApiDocument } from '../../src/http/openapi.js';
import { queries } from '../../src/read-models/index.js';
import { registry } from '../e2e/routes.js';
import { Documented, type OpenApi } from './documented.js';

/** What this build says at `/openapi.json`. */
export const openApi = JSON.parse(JSON.stringify(openApiDocument(registry, queries, endpoints, '/'))) as OpenApi;

/** The judge of answers. */
export const ownDocument = new Documented(openApi);
