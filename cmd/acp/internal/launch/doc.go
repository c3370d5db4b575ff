// Package launch is the way to an agent: how it is started or reached, and what to tell the user when
// that fails.
package launch
