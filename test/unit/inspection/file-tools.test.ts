import { describe, expect, it } from 'vitest';
import { returnsFilesOnly, startsFileServer } from '../../../src/inspection/file-tools.js';
import type { JsonObject } from '../../../src/protocol/jsonrpc.js';

const PATH: JsonObject = {
  type: 'object',
  properties: { path: { type: 'string' }, head: { type: 'number' } },
  required: ['path'],
};

/** The reference filesystem server's `read_text_file`, with what a row changes. */
function tool(change: JsonObject = {}): JsonObject {
  return {
    name: 'read_text_file',
    title: 'Read Text File',
    description:
      'Read the complete contents of a file from the file system as text. Handles various text encodings and provides detailed error messages if the file cannot be read.',
    inputSchema: PATH,
    outputSchema: { type: 'object', properties: { content: { type: 'string' } } },
    annotations: { readOnlyHint: true, openWorldHint: false },
    ...change,
  };
}

function taking(properties: JsonObject, required: readonly string[]): JsonObject {
  return { inputSchema: { type: 'object', properties, required } };
}

describe('tools that return the content of files and nothing else', () => {
  it.each<[string, JsonObject]>([
    ['as the reference server writes it', {}],
    ['in camel case', { name: 'readTextFile' }],
    [
      'several files',
      {
        name: 'read_multiple_files',
        description: "Read the contents of multiple files. Each file's content is returned.",
        ...taking({ paths: { type: 'array', items: { type: 'string' } } }, ['paths']),
      },
    ],
    [
      'of a repository',
      {
        name: 'get_file_contents',
        title: 'Get file or directory contents',
        description: 'Get the contents of a file or directory from a GitHub repository',
        outputSchema: undefined as never,
        ...taking({ owner: {}, repo: {}, path: {}, ref: {}, sha: {} }, ['owner', 'repo', 'path']),
      },
    ],
    [
      'a part of a file',
      {
        name: 'read_file',
        description: 'Reads a file of the project.',
        ...taking({ relative_path: {}, start_line: {}, end_line: {} }, ['relative_path']),
      },
    ],
  ])('are chosen: %s', (_what, change) => {
    const { outputSchema, ...rest } = tool(change);
    expect(returnsFilesOnly(outputSchema === undefined ? rest : { ...rest, outputSchema })).toBe(true);
  });

  it.each<[string, JsonObject]>([
    ['another name', { name: 'get_issue' }],
    ['a name that only begins so', { name: 'read_file_and_comments' }],
    ['a name with a look-alike letter', { name: 'rеad_file' }],
    ['media, which hosts draw', { name: 'read_media_file' }],
    ['issues, whatever it is called', { description: 'Reads the file of an issue.' }],
    ['comments in the title', { title: 'Read file comments' }],
    ['web pages', { description: 'Read the content of a file or a web page.' }],
    ['messages beside error messages', { description: 'Reads files, messages, error messages.' }],
    ['no description', { description: '' }],
    ['a description of something else', { description: 'Reads records as text.' }],
    ['a URL', taking({ path: {}, url: {} }, ['path'])],
    ['a flag that makes it fetch', taking({ path: {}, isUrl: {} }, ['path'])],
    ['no argument that says which file', taking({ owner: {}, repo: {} }, ['owner'])],
    ['an optional path', taking({ path: {} }, [])],
    ['no schema', { inputSchema: {} }],
    ['more in the result', { outputSchema: { properties: { content: {}, comments: {} } } }],
    ['an open world', { annotations: { readOnlyHint: true, openWorldHint: true } }],
    ['a tool that writes', { annotations: { readOnlyHint: false } }],
  ])('are not chosen: %s', (_what, change) => {
    expect(returnsFilesOnly(tool(change))).toBe(false);
  });
});

describe('a command that starts a server of local files', () => {
  const SERVER = '@modelcontextprotocol/server-filesystem';
  const INSTALLED = `/opt/app/node_modules/${SERVER}/dist/index.js`;

  it.each([
    [`npx -y ${SERVER} /data`],
    [`npx ${SERVER}@2026.8.31 /data`],
    [`npx.cmd -y ${SERVER} C:\\data`],
    [`cmd /c npx -y ${SERVER} C:\\data`],
    [`pnpm dlx ${SERVER} /data`],
    [`bunx ${SERVER} /data`],
    [`node ${INSTALLED} /data`],
    ['/usr/local/bin/mcp-server-filesystem /data'],
    ['docker run -i --rm --mount type=bind,src=/data,dst=/projects mcp/filesystem /projects'],
    ['docker run -i --rm -v /data:/projects mcp/filesystem:latest /projects'],
  ])('%s', (command) => expect(startsFileServer(command.split(' '))).toBe(true));

  it.each([
    ['npx -y @modelcontextprotocol/server-everything'],
    [`npx -y another-server ${SERVER}`],
    [`npx -y --package=another ${SERVER}`],
    ['npx -y mcp-server-filesystem /data'],
    [`npx -y @evil/server-filesystem ${SERVER}`],
    [`node server.js ${INSTALLED}`],
    [`node --import=./other.js ${INSTALLED}`],
    ['docker run -i --entrypoint /bin/other mcp/filesystem'],
    ['docker run -i another/image mcp/filesystem'],
    [`sh -c ${SERVER}`],
    ['npx'],
    [''],
  ])('is not: %s', (command) => expect(startsFileServer(command.split(' '))).toBe(false));
});
