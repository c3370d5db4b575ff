package wire

import "encoding/json"

// A Patch is a field of an update with three states: unchanged (the zero
// value, not on the wire), cleared (null on the wire) and set to a value.
type Patch[T any] struct {
	value T
	state PatchState
}

// A PatchState tells what a Patch does.
type PatchState uint8

// The three states of a [Patch].
const (
	PatchUnchanged PatchState = iota
	PatchCleared
	PatchSet
)

// Set returns a patch that replaces the field by v.
func Set[T any](v T) Patch[T] { return Patch[T]{value: v, state: PatchSet} }

// Clear returns a patch that removes the field's value.
func Clear[T any]() Patch[T] { return Patch[T]{state: PatchCleared} }

// State returns what the patch does.
func (p Patch[T]) State() PatchState { return p.state }

// IsZero reports whether the patch leaves the field unchanged.
func (p Patch[T]) IsZero() bool { return p.state == PatchUnchanged }

// IsClear reports whether the patch removes the field's value.
func (p Patch[T]) IsClear() bool { return p.state == PatchCleared }

// Get returns the new value; ok is false when the patch does not set one.
func (p Patch[T]) Get() (v T, ok bool) { return p.value, p.state == PatchSet }

// Or returns the new value, or v when the patch does not set one.
func (p Patch[T]) Or(v T) T {
	if p.state == PatchSet {
		return p.value
	}
	return v
}

// Apply changes *v as the patch says: set replaces it, cleared makes it the
// zero value, unchanged leaves it.
func (p Patch[T]) Apply(v *T) {
	if p.state != PatchUnchanged {
		*v = p.value
	}
}

// MarshalJSON encodes the new value, or null. It cannot leave the field out;
// the option omitzero of encoding/json does that.
func (p Patch[T]) MarshalJSON() ([]byte, error) {
	if p.state != PatchSet {
		return []byte("null"), nil
	}
	return json.Marshal(p.value)
}

// UnmarshalJSON makes null a cleared patch and anything else a set one.
func (p *Patch[T]) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*p = Clear[T]()
		return nil
	}
	p.state = PatchSet
	return json.Unmarshal(data, &p.value)
}
