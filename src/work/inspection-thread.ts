// The thread that inspects: the same code as on the event loop.

import { runJob } from '../inspection/jobs.js';
import { serveJobs } from './thread.js';

serveJobs(runJob);
