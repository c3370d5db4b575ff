// A browser of a member of a team: the issuer of the team lets it in, for as long as a token lasts, and then again.

import { keeps } from "./forget";

const teamKey = "acp.team", renewedKey = "acp.renewed";
const often = 60_000; // ms in which a browser is sent to the issuer once, unless somebody asks for it

keeps(() => localStorage.removeItem(teamKey));

// teamLogin is the address where the gateway has a browser log in, which then shows what is shown now.
export function teamLogin(): string {
  const at = location.hash.startsWith("#/") ? location.hash.slice(2) : "";
  return `/login/team?from=${encodeURIComponent(location.origin)}&at=${encodeURIComponent(at)}`;
}

// isOfTeam notes that the user of this browser is a member of a team.
export function isOfTeam() {
  try {
    localStorage.setItem(teamKey, "1");
  } catch {
    // There is no storage. Somebody has to log in then.
  }
}

// wasOfTeam reports whether the user of this browser is a member of a team, who has not logged out.
export function wasOfTeam(): boolean {
  try {
    return localStorage.getItem(teamKey) !== null;
  } catch {
    return false;
  }
}

// renews reports whether to log in once more without being asked to.
export function renews(): boolean {
  try {
    if (!wasOfTeam() || Date.now() - Number(sessionStorage.getItem(renewedKey)) < often) return false;
    sessionStorage.setItem(renewedKey, String(Date.now()));
    return true;
  } catch {
    return false;
  }
}
