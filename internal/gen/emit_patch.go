package main

// emitPatch writes the type of fields with three states. Each version has its own, so
// that its documentation is found where it is used.
func emitPatch(w *writer) { w.WriteString(patchSource) }

const patchSource = `// Patch is a field of an update with three states: unchanged (the zero value, not on
// the wire), cleared (null on the wire) and set to a value. It appears exactly where
// the schema tells absent and null apart. Make one with [Set] or [Clear]. Patches of a
// comparable type can be compared with ==.
type Patch[T any] struct {
	value T
	state patchState
}

type patchState uint8

const (
	patchUnchanged patchState = iota
	patchCleared
	patchSet
)

// Set returns a patch that replaces the field by v.
func Set[T any](v T) Patch[T] { return Patch[T]{value: v, state: patchSet} }

// Clear returns a patch that removes the field's value.
func Clear[T any]() Patch[T] { return Patch[T]{state: patchCleared} }

// IsZero reports whether the patch leaves the field unchanged.
func (p Patch[T]) IsZero() bool { return p.state == patchUnchanged }

// IsClear reports whether the patch removes the field's value.
func (p Patch[T]) IsClear() bool { return p.state == patchCleared }

// Get returns the new value. ok is false if the patch does not set one.
func (p Patch[T]) Get() (v T, ok bool) { return p.value, p.state == patchSet }

// Or returns the new value, or v if the patch does not set one.
func (p Patch[T]) Or(v T) T {
	if p.state == patchSet {
		return p.value
	}
	return v
}

// Apply changes *v as the patch says: it stores the new value, stores the zero value
// if the patch clears the field, and otherwise leaves *v alone.
func (p Patch[T]) Apply(v *T) {
	if p.state != patchUnchanged {
		*v = p.value
	}
}

// MarshalJSON encodes the new value, or null. It cannot leave the field out; the
// option omitzero of encoding/json does that.
func (p Patch[T]) MarshalJSON() ([]byte, error) {
	if p.state != patchSet {
		return []byte("null"), nil
	}
	return json.Marshal(p.value)
}

// UnmarshalJSON reads null as a patch that clears and anything else as one that sets.
func (p *Patch[T]) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*p = Clear[T]()
		return nil
	}
	p.state = patchSet
	return json.Unmarshal(data, &p.value)
}
`
