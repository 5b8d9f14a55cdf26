// Tells reviewers, by a request to a configured URL, that something waits for them: the rule, the tool, the upstream, a
// keyed hash of the caller and a link to the page where it is answered. It carries no arguments, and no answer comes back
// by it. Each message is signed, tried again with pauses, and given up in the end; no call waits for one.
// docs/reference/approvals.md#webhook; Standard Webhooks (standardwebhooks.com); Adaptive Cards 1.4; Slack Block Kit.

import type { WebhookSettings } from '../config/settings.js';
import type { Approval, ApprovalCaller } from '../policy/approval.js';
import type { Emit } from '../policy/events.js';
import { webhookSigner } from '../state/derived-keys.js';
import { escapeForTerminal, makeVisible } from '../text/escaping.js';
import { countOf } from '../text/wording.js';
import type { GuardedFetch, PostMessage } from '../upstream/safe-fetch.js';

export type WebhookPorts = {
  readonly post: PostMessage;
  readonly emit: Emit;
  readonly now: () => number;
  /** A keyed hash by which reviewers tell callers apart. */
  readonly hashCaller: (caller: ApprovalCaller) => string;
  /** The page of the console on which an approval is answered. */
  readonly linkTo: (id: string) => string;
};

export type Webhook = {
  /** Sends a message about a new approval, at once or later. Throws nothing and waits for nothing. */
  notify(approval: Approval): void;
  /** Gives up what has not been sent. */
  close(): void;
};

/** Pauses before each attempt. */
const PAUSES_MS = [0, 1_000, 5_000, 25_000, 125_000];
const TIMEOUT_MS = 10_000;
/** Nothing in the body of a response is read. */
const NO_BODY = 0;
/** Messages that wait or are being sent; beyond that the oldest is given up. */
export const MAX_MESSAGES = 1_000;
const MAX_RUNNING = 4;
const LAST_SUCCESS = 299;
const FIRST_SERVER_ERROR = 500;
/** Statuses of a receiver that may take the same message later. */
const TRANSIENT_STATUSES: ReadonlySet<number> = new Set([408, 425, 429]);
/** What would fail again in the same way. */
const LASTING_ERRORS: ReadonlySet<string> = new Set(['refused-address', 'redirect', 'invalid']);

type Message = {
  readonly id: string;
  readonly body: string;
  /** Later there is nothing to answer. */
  readonly expiresAtMs: number;
  attempts: number;
  isRunning: boolean;
  timer: NodeJS.Timeout | undefined;
};

/** Creates the sender to one URL. */
export function createWebhook(settings: WebhookSettings, ports: WebhookPorts): Webhook {
  const { post, emit, now } = ports;
  const sign = settings.secret === undefined ? undefined : webhookSigner(settings.secret);
  /** In the order in which they came. */
  const messages = new Set<Message>();
  const ready: Message[] = [];
  let running = 0;
  let isClosed = false;

  function end(message: Message, outcome: 'delivered' | 'failed' | 'dropped', detail?: string): void {
    clearTimeout(message.timer);
    messages.delete(message);
    emit('reviewersNotified', { webhook: settings.name, outcome, detail });
  }

  function makeRoom(): void {
    if (messages.size < MAX_MESSAGES) return;
    const oldest = [...messages].find((message) => !message.isRunning);
    if (oldest === undefined) return;
    const at = ready.indexOf(oldest);
    if (at >= 0) ready.splice(at, 1);
    end(oldest, 'dropped', 'too many messages wait');
  }

  function start(): void {
    while (running < MAX_RUNNING && !isClosed) {
      const message = ready.shift();
      if (message === undefined) return;
      running += 1;
      message.isRunning = true;
      void send(message).finally(() => {
        running -= 1;
        start();
      });
    }
  }

  async function send(message: Message): Promise<void> {
    if (now() >= message.expiresAtMs) return end(message, 'failed', 'the request no longer waits');
    const outcome = await attempt(message).catch(() => FAILED);
    message.isRunning = false;
    message.attempts += 1;
    if (outcome === undefined) return end(message, 'delivered');
    const pauseMs = PAUSES_MS[message.attempts];
    if (outcome.isLasting || pauseMs === undefined || isClosed) return end(message, 'failed', outcome.detail);
    message.timer = setTimeout(() => {
      ready.push(message);
      start();
    }, pauseMs);
    message.timer.unref();
  }

  /** Resolves with what went wrong. */
  async function attempt({ id, body }: Message): Promise<Failure | undefined> {
    const headers = { 'content-type': 'application/json', ...sign?.(id, body, now()) };
    const { url, network, plaintext } = settings;
    const rule = { network, plaintext, maxBytes: NO_BODY, timeoutMs: TIMEOUT_MS };
    const outcome = await post(url, { headers, body }, rule);
    if (!outcome.ok) {
      // Where a redirect leads may repeat the URL, which is a secret.
      const detail = outcome.why === 'redirect' ? 'answered with a redirect' : outcome.detail;
      return { isLasting: LASTING_ERRORS.has(outcome.why), detail };
    }
    const { status } = outcome;
    if (status <= LAST_SUCCESS) return undefined;
    const isLasting = status < FIRST_SERVER_ERROR && !TRANSIENT_STATUSES.has(status);
    return { isLasting, detail: `answered with status ${status}` };
  }

  return {
    notify(approval) {
      if (approval.demand.reviewer === undefined || isClosed) return;
      makeRoom();
      const { id, expiresAtMs } = approval;
      const body = JSON.stringify(PAYLOADS[settings.format](factsOf(approval, ports)));
      const message: Message = { id, body, expiresAtMs, attempts: 0, isRunning: false, timer: undefined };
      messages.add(message);
      ready.push(message);
      start();
    },
    close() {
      isClosed = true;
      for (const { timer } of messages) clearTimeout(timer);
      messages.clear();
      ready.length = 0;
    },
  };
}

/** The senders to all receivers. */
export type Webhooks = Webhook & {
  /** Sends to these receivers from now on. What waits for one that is as before is kept. */
  use(receivers: readonly WebhookSettings[]): void;
};

/** `open` makes the client of one receiver, whose certificate these authorities or those of the system signed. */
export function createWebhooks(
  open: (ca: string | undefined) => Pick<GuardedFetch, 'postMessage' | 'close'>,
  ports: Omit<WebhookPorts, 'post'>,
): Webhooks {
  let current = new Map<string, Webhook>();

  function create(receiver: WebhookSettings): Webhook {
    const { postMessage, close } = open(receiver.ca);
    const webhook = createWebhook(receiver, { ...ports, post: postMessage });
    return {
      notify: webhook.notify,
      close() {
        webhook.close();
        void close();
      },
    };
  }

  return {
    use(receivers) {
      const before = current;
      current = new Map();
      for (const receiver of receivers) {
        const { secret, ...rest } = receiver;
        const key = JSON.stringify([rest, secret === undefined ? undefined : [...secret]]);
        current.set(key, before.get(key) ?? create(receiver));
      }
      for (const [key, webhook] of before) if (!current.has(key)) webhook.close();
    },
    notify(approval) {
      for (const webhook of current.values()) webhook.notify(approval);
    },
    close() {
      for (const webhook of current.values()) webhook.close();
      current = new Map();
    },
  };
}

type Failure = { readonly isLasting: boolean; readonly detail: string };
const FAILED: Failure = { isLasting: false, detail: 'could not be sent' };

/** All that a message says. */
type Facts = {
  readonly id: string;
  readonly rules: readonly string[];
  readonly upstream: string;
  readonly method: string;
  /** Undefined where the caller chooses it: a URI. */
  readonly name: string | undefined;
  /** The name by which clients know it, where that is another. */
  readonly shownAs: string | undefined;
  readonly caller: string;
  readonly count: number;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  readonly link: string;
};

function factsOf(
  { id, subject, demand, createdAtMs, expiresAtMs }: Approval,
  { hashCaller, linkTo }: WebhookPorts,
): Facts {
  const { upstream, method, name, shownAs, caller } = subject;
  return {
    ...{ id, upstream, method, shownAs, createdAtMs, expiresAtMs, rules: demand.rules },
    name: NAMED.has(method) ? inertName(name) : undefined,
    caller: hashCaller(caller),
    count: demand.reviewer?.count ?? 0,
    link: linkTo(id),
  };
}

/** Methods whose names are those of definitions. */
const NAMED: ReadonlySet<string> = new Set(['tools/call', 'prompts/get']);
const MAX_NAME = 128;
/** What makes no link, no mention and no markup anywhere; letters outside ASCII may look like others. */
const NOT_PLAIN = /[^A-Za-z0-9_./ {}\\-]/gu;

/** A name as every receiver shows it: what might be markup, a mention, a link or invisible is written as its code. */
function inertName(name: string): string {
  const shown = name.length > MAX_NAME ? `${name.slice(0, MAX_NAME)}...` : name;
  return makeVisible(escapeForTerminal(shown)).replace(
    NOT_PLAIN,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

const TITLE = 'A request waits for a reviewer';
const BUTTON = 'Open the request';

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

/** The facts in lines of plain text. */
function linesOf(facts: Facts): readonly string[] {
  const { name, shownAs, method, upstream, rules, caller, count, expiresAtMs } = facts;
  const known = shownAs === undefined ? '' : `, known to clients as ${shownAs}`;
  return [
    `${method}${name === undefined ? '' : ` ${name}`} at ${upstream}${known}`,
    `Rule: ${rules.join(', ')}`,
    `Caller: ${caller}`,
    `Needs ${countOf(count, 'reviewer')}, until ${timeOf(expiresAtMs)}`,
  ];
}

/** The message in the form of each receiver. The text of others stands only where no markup is read. */
const PAYLOADS: Readonly<Record<WebhookSettings['format'], (facts: Facts) => object>> = {
  json: ({ id, rules, upstream, method, name, shownAs, caller, count, createdAtMs, expiresAtMs, link }) => ({
    type: 'approval.requested',
    timestamp: timeOf(createdAtMs),
    data: {
      ...{ approval: id, rules, upstream, method, name: name ?? null, caller, reviewers: count },
      ...(shownAs === undefined ? {} : { shownAs }),
      ...{ expires: timeOf(expiresAtMs), url: link },
    },
  }),
  slack: (facts) => ({
    text: TITLE,
    blocks: [
      { type: 'header', text: { type: 'plain_text', text: TITLE, emoji: false } },
      { type: 'section', text: { type: 'plain_text', text: linesOf(facts).join('\n'), emoji: false } },
      {
        type: 'actions',
        elements: [{ type: 'button', text: { type: 'plain_text', text: BUTTON, emoji: false }, url: facts.link }],
      },
    ],
  }),
  teams: (facts) => ({
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        contentUrl: null,
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.4',
          // A text block would read Markdown; the runs of a rich text block read none.
          body: [TITLE, ...linesOf(facts)].map((text) => ({
            type: 'RichTextBlock',
            inlines: [{ type: 'TextRun', text }],
          })),
          actions: [{ type: 'Action.OpenUrl', title: BUTTON, url: facts.link }],
        },
      },
    ],
  }),
};
