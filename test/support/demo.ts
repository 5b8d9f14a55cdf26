// The parts of `sallyport dev` that tests start by themselves: the demo server, its files and its issuer.

export { type DemoUpstream, startDemoUpstream } from '../../src/dev/demo-upstream.js';
export { type DemoFiles, writeDemoFiles } from '../../src/dev/files.js';
export { type DevIssuer, startIssuer } from '../../src/dev/issuer.js';
