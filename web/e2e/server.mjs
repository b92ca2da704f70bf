// A static file server for a folder, as any would do.

import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';

const TYPES = {
  '.css': 'text/css',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.wasm': 'application/wasm',
};

/** Serves a folder on a free port; resolves to its address and a function that ends it. */
export function serve(folder) {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost');
    const path = join(folder, normalize(pathname === '/' ? '/index.html' : pathname));
    try {
      if (!statSync(path).isFile()) throw new Error('no file');
    } catch {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { 'content-type': TYPES[extname(path)] ?? 'application/octet-stream' });
    createReadStream(path).pipe(response);
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      resolve({ address: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() });
    });
  });
}
