// Package launch reaches agents: it starts their processes, dials their addresses, and explains to
// the user why an agent cannot be used. It keeps nothing: processes and connections belong to the
// caller.
package launch
