// The user of a client, with a browser of no more than cookies, redirects and forms: opens the link of an approval, logs in at
// the development issuer, and says yes.

/** The link of an approval, in whatever a client shows. */
export function linkIn(text) {
  return /http:\/\/127\.0\.0\.1:\d+\/\.well-known\/sallyport\/approve\/[0-9a-f]{32}/.exec(text)?.[0];
}

const MAX_STEPS = 10;

function createBrowser() {
  /** By host and port, then by name. */
  const jar = new Map();

  async function send(url, init) {
    const { host } = new URL(url);
    const own = jar.get(host) ?? new Map();
    jar.set(host, own);
    const cookie = [...own].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, { ...init, redirect: 'manual', headers: { ...init.headers, cookie } });
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      own.set(name, value);
    }
    return { status: response.status, headers: response.headers, url, body: await response.text() };
  }

  /** Where a browser goes on by itself: by a redirect, or by a page that leads to another site. */
  function nextOf({ headers, url }) {
    const next = headers.get('location') ?? /^0; url=(.+)$/.exec(headers.get('refresh') ?? '')?.[1];
    return next === undefined ? undefined : new URL(next, url).href;
  }

  return {
    /** Sends a form as the page at its origin does. */
    async submit(url, fields) {
      let page = await send(url, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded', origin: new URL(url).origin },
        body: new URLSearchParams(fields).toString(),
      });
      for (let step = 0, next = nextOf(page); next !== undefined && step < MAX_STEPS; step += 1, next = nextOf(page))
        page = await send(next, {});
      return page;
    },
  };
}

/** Rejects where the page does not take the yes. */
export async function approveAt(link, user) {
  const browser = createBrowser();
  let page = await browser.submit(link, { do: 'login' });
  if (page.body.includes('name="user"')) page = await browser.submit(page.url, { user });
  const form = /name="form" value="([^"]+)"/.exec(page.body)?.[1] ?? '';
  const { status, body } = await browser.submit(link, { form, do: 'grant' });
  if (!body.includes('You approved this request.')) throw new Error(`the page answers the yes with ${status}`);
}
