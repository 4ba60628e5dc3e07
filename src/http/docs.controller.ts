import { existsSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Controller, Get, Header, Inject, Param, Redirect, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { CONFIG } from '../config/config.token.js';
import type { Config } from '../config/config.js';
import { endpoints } from '../auth-proxy/endpoints.js';
import { REGISTRY, type Registry } from '../decide/registry.js';
import { CoordinatorError } from '../domain/errors.js';
import { queries } from '../read-models/index.js';
import { openApiDocument } from './openapi.js';

const swaggerUi = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));

/** The pages that VitePress builds from the Markdown in `docs/`. */
const site = fileURLToPath(new URL('../site/', import.meta.url));

/** The files served, by path below /docs/: a request never determines a file name. */
const files: ReadonlyMap<string, string> = new Map([
  ...(existsSync(site) ? readdirSync(site, { recursive: true, withFileTypes: true }) : [])
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .map((file): [string, string] => [file.slice(site.length).replace(/(?:^index)?\.html$/, ''), file]),
  ...['swagger-ui.css', 'swagger-ui-bundle.js'].map((name): [string, string] => [name, join(swaggerUi, name)]),
]);

const contentTypes: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
};

const page = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Countersign API</title><link rel="icon" href="/docs/icon.svg"><link rel="stylesheet" href="/docs/swagger-ui.css"></head>
<body><p><a href="/docs">All documentation</a></p><div id="swagger-ui"></div><script src="/docs/swagger-ui-bundle.js"></script><script src="/docs/start.js"></script></body>
</html>
`;

// Requests need a stamp over their body, which a form cannot create: the page is for reading. Without a null validator,
// the bundle would send this server's address to a server elsewhere.
const start = `window.ui = SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#swagger-ui',
  supportedSubmitMethods: [],
  validatorUrl: null,
});
`;

/** The documentation, the OpenAPI document and a page to read it, all from this server alone. */
@Controller()
export class DocsController {
  /** Made when it is first asked for, once: a coordinator in a test is rarely asked. */
  private document: object | undefined;

  constructor(
    @Inject(REGISTRY) private readonly registry: Registry,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /** Tells people who open the server's address in a browser what it is. */
  @Get()
  @Redirect('/docs', 302)
  home(): void {
    return;
  }

  @Get('openapi.json')
  openapi(): object {
    const { app, publicUrl = '/' } = this.config;
    this.document ??= openApiDocument(this.registry, queries, app === 'all' ? endpoints : [], publicUrl);
    return this.document;
  }

  @Get('docs')
  docs(@Res({ passthrough: true }) reply: FastifyReply): Promise<Buffer> {
    return this.file('', reply);
  }

  @Get('docs/api')
  @Header('content-type', 'text/html; charset=utf-8')
  api(): string {
    return page;
  }

  @Get('docs/start.js')
  @Header('content-type', 'text/javascript; charset=utf-8')
  start(): string {
    return start;
  }

  @Get('docs/*')
  async file(@Param('*') path: string, @Res({ passthrough: true }) reply: FastifyReply): Promise<Buffer> {
    const file = files.get(path);
    if (!file) throw new CoordinatorError('NOT_FOUND', 'page not found: /docs lists all pages');
    void reply.type(contentTypes[extname(file)] ?? 'application/octet-stream');
    // Their names contain a hash of their contents.
    if (path.startsWith('assets/')) void reply.header('cache-control', 'public, max-age=31536000, immutable');
    return readFile(file);
  }
}
