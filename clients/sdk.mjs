// What clients on the TypeScript SDK, v1 or v2, do in every run: they list, call, and ask for what is hidden. Judges nothing.

const textOf = (result) => result.content.map((block) => block.text ?? '').join('');

async function refusalOf(client, name) {
  try {
    return `result ${textOf(await client.callTool({ name, arguments: {} }))}`;
  } catch (error) {
    return `${error.code} ${error.message}`;
  }
}

/** Everything that the SDK gives whoever calls, for a call that may be asked about. */
async function attempt(client, call) {
  try {
    return JSON.stringify(await client.callTool(call));
  } catch (error) {
    return JSON.stringify({ code: error.code, message: error.message, data: error.data });
  }
}

async function listAll(client) {
  const names = [];
  let cursor;
  do {
    const page = await client.listTools(cursor === undefined ? {} : { cursor });
    names.push(...page.tools.map((tool) => tool.name));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return names;
}

/** What a connected client gets for an order. */
export async function carryOut(client, { call, leak, hidden, unknown, approved }) {
  return {
    listed: await listAll(client),
    called: textOf(await client.callTool(call)),
    leaked: textOf(await client.callTool(leak)),
    hidden: await refusalOf(client, hidden),
    unknown: await refusalOf(client, unknown),
    asked: approved && [await attempt(client, approved), await attempt(client, approved)],
  };
}
