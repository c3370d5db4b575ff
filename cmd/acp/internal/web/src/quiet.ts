// Without this zod tries whether it may make functions of texts, which the page's policy refuses, and the browser reports
// that. It is imported before anything that uses zod.

import { config } from "zod";

config({ jitless: true });
