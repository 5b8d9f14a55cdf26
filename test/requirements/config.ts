// What configuration and the command line must do.
import type { Requirement } from './requirement.js';

export const configRequirements: readonly Requirement[] = [
  {
    id: 'C-01',
    source: 'docs/contract.md §3',
    behaviour: 'A gateway file becomes frozen settings with the defaults of the contract.',
  },
  {
    id: 'C-02',
    source: 'docs/contract.md §3',
    behaviour: 'YAML 1.2 core: one document, no tags, no merge keys, no __proto__.',
  },
  {
    id: 'C-03',
    source: 'docs/contract.md §1',
    behaviour: 'Every path of a file has its line and column.',
  },
  { id: 'C-04', source: 'docs/contract.md §1', behaviour: 'Unknown words get a suggestion.' },
  {
    id: 'C-05',
    source: 'docs/contract.md §3',
    behaviour: 'Durations, sizes and rates have one spelling.',
  },
  {
    id: 'C-06',
    source: 'docs/contract.md §1',
    behaviour: 'All mistakes come in one run, and no text crashes a loader.',
  },
  {
    id: 'C-07',
    source: 'docs/contract.md §3',
    behaviour: 'Origins that serve refuses are refused.',
  },
  {
    id: 'C-08',
    source: 'docs/contract.md §3',
    behaviour: 'Keys and secrets that serve refuses are refused, and never echoed.',
  },
  {
    id: 'C-09',
    source: 'docs/contract.md §3',
    behaviour: 'Upstreams that serve refuses are refused.',
  },
  {
    id: 'C-10',
    source: 'docs/contract.md §3',
    behaviour: 'Listeners, audit and console that serve refuses are refused.',
  },
  {
    id: 'C-11',
    source: 'docs/contract.md §3 and §4',
    behaviour: 'Keys that are not available are read and refused, never silently accepted.',
  },
  {
    id: 'C-12',
    source: 'docs/contract.md §1 and §10',
    behaviour: 'The gateway key has one text form, an id and a public part.',
  },
  {
    id: 'C-13',
    source: 'docs/contract.md §1 and §8',
    behaviour: 'The published schemas print, and hold for written audit events.',
  },
  {
    id: 'C-14',
    source: 'docs/contract.md §4',
    behaviour: 'Policies load from a folder, with one hash.',
  },
  {
    id: 'C-15',
    source: 'docs/contract.md §4',
    behaviour: 'A rule has the keys of its effect and no other.',
  },
  {
    id: 'C-16',
    source: 'docs/contract.md §1',
    behaviour: 'Mistakes are reported as text, JSON and SARIF.',
  },
  {
    id: 'C-17',
    source: 'docs/contract.md §3',
    behaviour: 'Changes are found by watch and by poll, by content, coalesced.',
  },
  {
    id: 'C-18',
    source: 'docs/contract.md §3',
    behaviour: 'The reference pages say what the schemas say.',
  },
  { id: 'C-19', source: 'docs/contract.md §3', behaviour: 'Every example loads.' },
  {
    id: 'C-20',
    source: 'docs/contract.md §1',
    behaviour: 'The command line has help with examples first, suggestions and exit codes.',
  },
  {
    id: 'C-21',
    source: 'docs/contract.md §1',
    behaviour: 'validate says everything that can be known without starting.',
  },
  {
    id: 'C-22',
    source: 'docs/contract.md §1',
    behaviour: 'keys makes a key and prints its public parts.',
  },
  { id: 'C-23', source: 'docs/contract.md §1', behaviour: 'healthcheck asks the ops listener.' },
  {
    id: 'C-24',
    source: 'docs/contract.md §3, §4 and §5',
    behaviour:
      'Every key of the gateway file, of policies and of lock files does something, shown by a test from file to effect.',
  },
];
