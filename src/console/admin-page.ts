// The page of the admin listener: asks for a token, shows the state of the controls. It is one document
// without external parts; its script and style are allowed by their hashes alone, and everything that is
// shown is put in as text. The token stays in the memory of the page (CSP Level 3, Trusted Types).

import { createHash } from 'node:crypto';

const STYLE = `
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff }
h1 { font-size: 1.4rem }
form { display: flex; gap: .5rem; flex-wrap: wrap }
input { flex: 1; min-width: 12rem; padding: .4rem; font: inherit }
button { padding: .4rem 1rem; font: inherit }
table { border-collapse: collapse; width: 100%; margin-top: 1rem }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #ccc; overflow-wrap: anywhere }
.degraded { color: #8a5a00; font-weight: bold }
.off { color: #a00; font-weight: bold }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818 } .degraded { color: #e0b050 } .off { color: #f77 } }
`;

const SCRIPT = `
'use strict';
const form = document.querySelector('form');
const token = document.querySelector('input');
const note = document.querySelector('output');
const rows = document.querySelector('tbody');
function show(controls) {
  rows.replaceChildren(...controls.map((row) => {
    const line = document.createElement('tr');
    for (const name of ['control', 'state', 'reason', 'since']) {
      const cell = document.createElement('td');
      cell.textContent = String(row[name]);
      if (name === 'state') cell.className = String(row.state);
      line.append(cell);
    }
    return line;
  }));
}
async function load() {
  const answer = await fetch('/api/controls', { headers: { authorization: 'Bearer ' + token.value.trim() }, credentials: 'omit' });
  const why = { 403: 'This token has no role here.', 503: 'The token cannot be verified now. Try again later.' };
  if (!answer.ok) throw new Error(why[answer.status] ?? 'The token was not accepted.');
  show((await answer.json()).controls);
  note.textContent = '';
}
form.addEventListener('submit', (event) => {
  event.preventDefault();
  load().catch((error) => { rows.replaceChildren(); note.textContent = error.message; });
});
`;

function hashSource(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

/** The policy that the page is served with: nothing but its own script and style, and its own API. */
export const ADMIN_PAGE_POLICY = [
  "default-src 'none'",
  `script-src ${hashSource(SCRIPT)}`,
  `style-src ${hashSource(STYLE)}`,
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

export const ADMIN_PAGE = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Sallyport</title><style>${STYLE}</style></head>
<body>
<h1>Sallyport: controls</h1>
<form><label for="token">Token</label><input id="token" type="password" autocomplete="off" required><button>Show</button></form>
<p><output role="status"></output></p>
<table><thead><tr><th scope="col">Control</th><th scope="col">State</th><th scope="col">Reason</th><th scope="col">Since</th></tr></thead><tbody></tbody></table>
<script>${SCRIPT}</script>
</body>
</html>
`;
