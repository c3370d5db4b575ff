// The page. Everything else is imported from here.

import "./quiet";
import { render } from "preact";
import { wantedToLeave } from "./forget";
import { Page } from "./page";
import { App } from "./view/App";
import { pairFromAddress } from "./login";
import { register } from "./worker";
import { apply } from "./scheme";

apply();
const page = new Page();
render(<App page={page} />, document.getElementById("page")!);
if (wantedToLeave()) void page.logout();
else void pairFromAddress().then(() => page.link.start());
register();
