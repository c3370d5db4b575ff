package interop

import "github.com/goacp/acp/internal/registry"

// newTarget gives a fresh decoder for a schema definition, false if there is none.
func newTarget(version, name string) (target, bool) { return registry.New(version, name) }
