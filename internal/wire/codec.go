package wire

// A Codec reads values of one package's types. It spares that package exported methods
// that only the engine could call.
type Codec struct {
	// Decode reads a value into v, a pointer, if that points to a type of the package,
	// and reports whether it does.
	Decode func(v any, d *Decoder) bool
	// Maker returns a function that makes and reads values of the type that v points
	// to, or nil if Decode is as good. v may be a nil pointer. Maker may be nil.
	Maker func(v any) func(d *Decoder) any
}

var codecs []Codec

// Register adds the types of a package. It is for init functions only.
func Register(c Codec) { codecs = append(codecs, c) }

// Decode reads a value into v, a pointer, if it points to a type of a registered
// package, and reports whether it does.
func Decode(v any, d *Decoder) bool {
	for i := range codecs {
		if codecs[i].Decode(v, d) {
			return true
		}
	}
	return false
}

// MakerOf returns a function that makes and reads values of type P faster than Decode
// would, or nil if there is none.
func MakerOf[P any]() func(d *Decoder) any {
	for _, c := range codecs {
		if c.Maker == nil {
			continue
		}
		if f := c.Maker((*P)(nil)); f != nil {
			return f
		}
	}
	return nil
}

// Item is Decode in the shape of an item decoder.
func Item[T any](v *T, d *Decoder) { Decode(v, d) }
