// Where it runs: chart and container.
import type { Requirement } from './requirement.js';

export const runtimeRequirements: readonly Requirement[] = [
  {
    id: 'R-01',
    source: 'docs/contract.md §11',
    behaviour: 'The chart passes helm lint, strictly.',
  },
  {
    id: 'R-02',
    source: 'docs/contract.md §11',
    behaviour: 'The chart runs the gateway as nobody, read-only, without capabilities.',
  },
  {
    id: 'R-03',
    source: 'docs/contract.md §11',
    behaviour:
      'Configuration, policies and pins come from ConfigMaps, the key from an existing Secret.',
  },
  {
    id: 'R-04',
    source: 'docs/contract.md §10',
    behaviour: 'The chart refuses a second replica while state is in memory.',
  },
  {
    id: 'R-05',
    source: 'docs/contract.md §11',
    behaviour: 'Every optional part of the chart renders.',
  },
  {
    id: 'R-06',
    source: 'docs/contract.md §11',
    behaviour:
      'The ports of the chart are those of the listeners: it renders nothing where the gateway file has others, and says where it cannot read that file.',
  },
  {
    id: 'R-07',
    source: 'docs/contract.md §8',
    behaviour:
      'The chart replaces a pod that writes its audit to a claim before it starts the next.',
  },
  {
    id: 'R-10',
    source: 'docs/contract.md §11',
    behaviour:
      'The image runs as a user without a name, on a read-only root, without capabilities.',
  },
  {
    id: 'R-11',
    source: 'docs/contract.md §6',
    behaviour: 'The container challenges a caller without a token.',
  },
  {
    id: 'R-12',
    source: 'docs/contract.md §11',
    behaviour: 'The container checks its health without a shell.',
  },
  {
    id: 'R-13',
    source: 'docs/contract.md §1; docs/reference/attacks.md case 94',
    behaviour: 'The container drains at SIGTERM and leaves a chain that verifies.',
  },
  {
    id: 'R-14',
    source: 'docs/contract.md §8, §11',
    behaviour:
      'Gateways in namespaces of process ids of their own never write one audit file together, and go on with it one after the other.',
  },
  { id: 'R-20', source: 'docs/contract.md §9', behaviour: 'The metrics pass promtool.' },
  {
    id: 'R-21',
    source: 'docs/contract.md §2',
    behaviour:
      'The console shows the state of every control to whoever holds a token, in a real browser.',
  },
  {
    id: 'R-22',
    source: 'docs/contract.md §2',
    behaviour: 'The console refuses a token that is not accepted and shows nothing.',
  },
];
