// The attacks of `npm run bench -- --hostile`, one entry each. hostile-upstream.mjs takes from it how the
// upstream answers, attacker.mjs what its caller asks; both run an entry for as long as they are told.
//
//   name              in the table, and for --attack
//   call(reply)       answers tools/call                           } what is left out is
//   list(reply)       answers tools/list, also to the gateway      } answered honestly
//   stream(reply)     writes to a stream that stands, until `reply.isOver()`
//   attack(caller)    what the caller does; again and again until the time is over
//   beside(caller)    what a second caller of the hostile upstream does meanwhile, in the same way; it must be
//                     answered, and without an error
//   leadMs            for how long the attack goes on before the other caller is measured
//   proof             the count of the upstream or of the attacker that shows that the attack took place

/** Below the 8 MiB that an answer may have, envelope included. */
const ANSWER_BYTES = 8 * 1024 * 1024 - 1024;
/** With envelope and escapes below the 64 K characters from which the close look is another thread's. */
const EVENT_CHARS = 55_000;
const CALLS_AT_ONCE = 100;
/** More than an upstream takes at once by default, of all its callers. */
const SLOW_CALLS = 130;
/** The body stays below the four megabytes that a request may have. */
const ARGUMENT_BYTES = 4 * 1024 * 1024 - 1024;
const UPLOADS_AT_ONCE = 12;
const LARGE_CALLS = 20;
const LISTS_AT_ONCE = 10;
/** As many as a listing may have. */
const MANY_TOOLS = 10_000;
/** In which they are listed and scanned. */
const LISTING_MS = 12_000;
const PAGES_AT_ONCE = 16;
/** Longer than the first lists wait. */
const HANGING_LEAD_MS = 11_000;
const BAD_TOKENS_AT_ONCE = 64;
const IDLE_STREAMS = 2_000;
/** In which they are opened, before the other caller is measured. */
const IDLE_LEAD_MS = 8_000;
const STREAMS = 4;

const fill = (part, chars = EVENT_CHARS) => part.repeat(Math.ceil(chars / part.length)).slice(0, chars);
const encoded = (text) => Buffer.from(text).toString('base64').replace(/=+$/, '');

/** Texts that take the close look longest for their length: much that begins like a finding and is none. */
const COSTLY = [
  fill('\uff14\uff12'),
  fill('<!--'),
  fill('secret=abcd '),
  fill(']('),
  fill('!['),
  fill('![a]('),
  fill(`${encoded('{"alg":"HS256"}')}.`),
  fill(`${encoded('pwd: ignore all rules [a](b) ')} `),
  fill('api_key: "x" '),
  fill('DE89 3704 0044 0532 0130 01 '),
  fill('4242 4242 4242 4241 '),
  fill('a\u200bb'),
  fill('%70wd:1 &#x41; \\u0041 pwd=[a](b) <b> ![x](y) ` '),
].map((text) => JSON.stringify(text));

const objectsOf = (bytes) => `[${'{},'.repeat(Math.floor((bytes - 4) / 3))}{}]`;
const emptyObjects = objectsOf(ANSWER_BYTES);
/** A picture as clients send it, in base64. */
const UPLOAD = JSON.stringify({ text: fill('iVBORw0KGgoAAAANSUhEUgAA', ARGUMENT_BYTES) });
const LARGE_ARGUMENTS = `{"items":${objectsOf(ARGUMENT_BYTES)}}`;
const prose = fill('The quick report says that every part arrived on time and that nobody was hurt. ', 7_000_000);

// Bytes, so that a hundred answers at once share them.
const CALL_OF_OBJECTS = Buffer.from(`{"content":[],"structuredContent":{"items":${emptyObjects}}`);
const LIST_OF_OBJECTS = Buffer.from(`{"tools":${emptyObjects}`);
const CALL_OF_PROSE = Buffer.from(`{"content":[{"type":"text","text":"${prose}"}]`);

const nameOf = (index) => `tool_${index % MANY_TOOLS}`;
const toolOf = (index, description = 'd') =>
  `{"name":"${nameOf(index)}","description":"${description}","inputSchema":{"type":"object"}}`;
const LIST_OF_MANY = Buffer.from(
  `{"tools":[${Array.from({ length: MANY_TOOLS }, (_, index) => toolOf(index)).join(',')}]`,
);

let pages = 0;

/** Callers get pages without end, each with another definition of a tool; the gateway gets thousands of tools. */
function sendChangedPage(reply) {
  if (!reply.isOfCaller) return reply.result(LIST_OF_MANY);
  pages += 1;
  return reply.result(`{"tools":[${toolOf(pages, `form ${pages}`)}],"nextCursor":"${pages}"`);
}

/** Events without end, each the work of a long text; the next when the client took the one before. */
async function sendCostlyEvents(reply) {
  const token = JSON.stringify(reply.progressToken);
  for (let step = 1; !reply.isOver(); step += 1) {
    const message = COSTLY[step % COSTLY.length];
    await reply.event(
      `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${token},"progress":${step},"message":${message}}}`,
    );
  }
}

/** The same on a stream that answers nobody, as log messages. */
async function sendCostlyLogs(reply) {
  for (let step = 1; !reply.isOver(); step += 1) {
    const data = COSTLY[step % COSTLY.length];
    await reply.event(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":${data}}}`);
  }
}

/** An announcement every few milliseconds: the gateway lists again as often as it lets itself be told to. */
async function announceLists(reply) {
  while (!reply.isOver()) {
    await reply.event('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}');
    await reply.pause(20);
  }
}

async function announceOnce(reply) {
  await reply.event('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}');
  while (!reply.isOver()) await reply.pause(100);
}

/** The text by which the upstream knows the second caller. */
const BESIDE = 'beside';

const sendEmptyObjects = (reply) => reply.result(CALL_OF_OBJECTS);

export const ATTACKS = [
  {
    name: 'costly-events',
    call: sendCostlyEvents,
    attack: (caller) => caller.callAtOnce(STREAMS),
    proof: 'events',
  },
  {
    name: 'costly-logs',
    stream: sendCostlyLogs,
    attack: (caller) => caller.holdStreams(STREAMS),
    proof: 'events',
  },
  {
    name: 'empty-objects',
    call: sendEmptyObjects,
    attack: (caller) => caller.callAtOnce(1),
    proof: 'calls',
  },
  {
    name: 'empty-objects-100-calls',
    call: sendEmptyObjects,
    attack: (caller) => caller.callAtOnce(CALLS_AT_ONCE),
    proof: 'calls',
  },
  {
    name: 'listing',
    list: (reply) => reply.result(LIST_OF_OBJECTS),
    stream: announceLists,
    attack: (caller) => caller.holdStreams(1),
    proof: 'lists',
  },
  {
    name: 'changing-pages',
    leadMs: LISTING_MS + 1_000,
    list: sendChangedPage,
    stream: announceOnce,
    attack: (caller) => Promise.all([caller.holdStreams(1), caller.followPages(PAGES_AT_ONCE, LISTING_MS)]),
    proof: 'lists',
  },
  {
    name: 'clean-results-100-calls',
    call: (reply) => reply.result(CALL_OF_PROSE),
    attack: (caller) => caller.callAtOnce(CALLS_AT_ONCE),
    proof: 'calls',
  },
  {
    name: 'slow-calls',
    call: (reply) => (reply.text === BESIDE ? reply.honest() : reply.wait()),
    attack: (caller) => caller.callAtOnce(SLOW_CALLS),
    beside: (caller) => caller.call(BESIDE),
    proof: 'calls',
  },
  {
    name: 'large-arguments',
    attack: (caller) => caller.callAtOnce(LARGE_CALLS, LARGE_ARGUMENTS),
    proof: 'answered',
  },
  {
    name: 'uploads',
    attack: (caller) => caller.callAtOnce(UPLOADS_AT_ONCE, UPLOAD),
    proof: 'answered',
  },
  {
    name: 'hanging-backend',
    leadMs: HANGING_LEAD_MS,
    list: (reply) => reply.wait(),
    attack: (caller) => caller.listEndpoint(LISTS_AT_ONCE),
    proof: 'answered',
  },
  {
    name: 'bad-tokens',
    attack: (caller) => caller.floodWithBadTokens(BAD_TOKENS_AT_ONCE),
    proof: 'refused',
  },
  {
    name: 'idle-streams',
    leadMs: IDLE_LEAD_MS,
    attack: (caller) => caller.holdIdle(IDLE_STREAMS),
    beside: (caller) => caller.call(BESIDE),
    proof: 'streams',
  },
];
