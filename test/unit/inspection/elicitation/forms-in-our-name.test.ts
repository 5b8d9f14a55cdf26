// Which forms of servers are taken for a question of the gateway itself, and which are not, whatever they ask to confirm.

import { describe, expect, it } from 'vitest';
import { checkForm } from '../../../../src/inspection/elicitation/requests.js';
import type { JsonObject } from '../../../support/json.js';

const YES = { type: 'boolean' };

function form(message: string, properties: JsonObject = { ok: YES }): JsonObject {
  return { mode: 'form', message, requestedSchema: { type: 'object', properties } };
}

const IMITATIONS: readonly (readonly [string, JsonObject])[] = [
  ['the name at the beginning', form('Sallyport: please confirm.')],
  ['the name in brackets', form('[Sallyport] Continue with write_record?')],
  ['the name as the speaker', form('The request is held. Sallyport asks you for a decision.')],
  ['the name with letters that look alike', form('S\u0430llyport asks you to confirm.')],
  ['the name with characters that show nothing', form('Sally\u200bport asks you to confirm.')],
  [
    'the words of the gateway',
    form('A policy of this gateway asks you to approve a request before it is carried out.'),
  ],
  ['the gateway by what it is', form('The security gateway requires approval for write_record.')],
  ['the gateway without its name', form('The gateway needs your confirmation.')],
  ['a call', form('Do you approve this tool call?')],
  ['a call that is to be allowed', form('Allow the tool call write_record {"id":"one"}?')],
  ['a call, in the other order', form('Tool call write_record: your approval is needed.')],
  ['a call in other words', form('Please authorize the following call.')],
  ['in a title', form('One question.', { ok: { ...YES, title: 'Approve the tool call' } })],
  ['in a description', form('One question.', { ok: { ...YES, description: 'Sallyport needs this to go on.' } })],
  ['in a choice', form('One question.', { ok: { type: 'string', enum: ['approve this tool call', 'deny'] } })],
  ['over two texts', form('Tool call: write_record {"id":"one"}', { approve: YES })],
  ['over two texts, by a title', form('tools/call write_record', { ok: { ...YES, title: 'Approve' } })],
  ['in German', form('Bitte genehmigen Sie diesen Werkzeugaufruf.')],
  ['in French', form("Veuillez approuver cet appel d'outil.")],
  ['in Spanish', form('Aprueba esta llamada a la herramienta.')],
  ['in Japanese', form('このツールの呼び出しを承認してください。')],
  ['in Chinese', form('请批准此工具调用。')],
];

/** What servers of the field ask. */
const HONEST: readonly (readonly [string, JsonObject])[] = [
  ['a deletion', form('Delete 12 files in /tmp? This cannot be undone.')],
  ['a confirmation', form('Please confirm that you want to delete the repository acme/site.', { confirm: YES })],
  ['a pull request', form('Do you approve the pull request #12?', { approve: YES })],
  ['an expense', form('Approve the expense report of 120 EUR?', { approved: YES, comment: { type: 'string' } })],
  ['a meeting', form('Approve this call with the customer on Monday?')],
  ['an API gateway', form('Which gateway should be restarted?', { gateway: { type: 'string' } })],
  ['a gateway that is deleted', form('Confirm the deletion of the gateway "eu-1".', { confirm: YES })],
  ['a repository of this name', form('Which branch of acme/sallyport should be deployed?')],
  ['a deletion in such a repository', form('Confirm the deletion of the branch main of sallyport.')],
  ['a payment', form('The payment gateway needs the country of the merchant.', { country: { type: 'string' } })],
  ['a permission of its own', form('Allow access to the calendar "team"?', { allow: YES })],
  ['phone calls', form('Call me tomorrow?', { phone: { type: 'string' }, allow: YES })],
  ['how many calls', form('How many tool calls may the agent make at most?', { max: { type: 'integer' } })],
  ['an environment', form('Deploy to production?', { environment: { type: 'string' }, confirm: YES })],
];

describe('[Q-05] forms in our name', () => {
  it.each(IMITATIONS)('are refused: %s', (_, params) => expect(checkForm(params)).toBe('elicitation-approval'));
  it.each(HONEST)('are not: %s', (_, params) => expect(checkForm(params)).toBeUndefined());
});
