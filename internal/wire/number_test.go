package wire

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
)

const (
	notInteger = "expected an integer"
	outOfRange = "integer out of range"
)

// TestIntegers: fractions are rejected, whole numbers are read however they are
// spelled, and 64-bit integers are exact (S73).
func TestIntegers(t *testing.T) {
	i64 := func(d *Decoder) string { return strconv.FormatInt(d.Int64(), 10) }
	i32 := func(d *Decoder) string { return strconv.FormatInt(int64(d.Int32()), 10) }
	u64 := func(d *Decoder) string { return strconv.FormatUint(d.Uint64(), 10) }
	u32 := func(d *Decoder) string { return strconv.FormatUint(uint64(d.Uint32()), 10) }
	u16 := func(d *Decoder) string { return strconv.FormatUint(uint64(d.Uint16()), 10) }
	verbs := []struct {
		name   string
		read   func(*Decoder) string
		lo, hi string // bounds, and the first values beyond them
		below  string
		above  string
	}{
		{"Int64", i64, "-9223372036854775808", "9223372036854775807", "-9223372036854775809", "9223372036854775808"},
		{"Int32", i32, "-2147483648", "2147483647", "-2147483649", "2147483648"},
		{"Uint64", u64, "0", "18446744073709551615", "-1", "18446744073709551616"},
		{"Uint32", u32, "0", "4294967295", "-1", "4294967296"},
		{"Uint16", u16, "0", "65535", "-1", "65536"},
	}
	for _, v := range verbs {
		t.Run(v.name, func(t *testing.T) {
			for _, x := range []struct{ in, want, err string }{
				{v.lo, v.lo, ""}, {v.hi, v.hi, ""}, {v.below, "0", outOfRange}, {v.above, "0", outOfRange},
				{v.hi + ".0", v.hi, ""}, {v.hi + "0e-1", v.hi, ""}, {v.above + ".00", "0", outOfRange},
				{"0", "0", ""}, {"-0", "0", ""}, {"-0.0", "0", ""}, {"1", "1", ""}, {"1.0", "1", ""}, {"1.000000000000000000000", "1", ""},
				{"1e2", "100", ""}, {"1E2", "100", ""}, {"1e+2", "100", ""}, {"1e0", "1", ""}, {"1.5e1", "15", ""}, {"0.1e1", "1", ""},
				{"100e-2", "1", ""}, {"0e400", "0", ""}, {"0.00e-99999999999999999999", "0", ""}, {"0e64", "0", ""}, {"-0e-3", "0", ""},
				{"1.5", "0", notInteger}, {"-1.5", "0", notInteger}, {"15e-1", "0", notInteger}, {"1e-400", "0", notInteger},
				{"0.1", "0", notInteger}, {"1e-1", "0", notInteger}, {"1e400", "0", notInteger}, {"1e99999999999999999999", "0", notInteger},
				{"1e20", "0", outOfRange}, {"1e64", "0", outOfRange}, {"99999999999999999999", "0", outOfRange},
				{"-99999999999999999999", "0", outOfRange},
				{strings.Repeat("9", 10000), "0", outOfRange}, {"1" + strings.Repeat("0", 10000), "0", outOfRange},
				{`"1"`, "0", notInteger}, {"null", "0", notInteger}, {"true", "0", notInteger}, {"{}", "0", notInteger}, {"[1]", "0", notInteger},
			} {
				d := reading(" " + x.in + " ")["copied"]
				if got := v.read(d); got != x.want {
					t.Errorf("%.40s: %s, want %s", x.in, got, x.want)
				}
				check(t, d, x.err)
				if strings.Contains(x.err, x.in) {
					t.Errorf("%.40s: the error holds the value", x.in)
				}
				// What is wrong does not disturb what follows.
				d = reading("[" + x.in + ",7]")["copied"]
				d.FirstElem()
				d.Try()
				v.read(d)
				if !d.NextElem() || v.read(d) != "7" || d.NextElem() {
					t.Errorf("%.40s: the next number is lost", x.in)
				}
			}
		})
	}
}

func TestNegativeIntegers(t *testing.T) {
	for in, want := range map[string]int64{"-1": -1, "-1.0": -1, "-1e2": -100, "-15e-1": 0, "-9007199254740993": -9007199254740993} {
		d := reading(in)["copied"]
		if got := d.Int64(); got != want {
			t.Errorf("%s: %d, want %d", in, got, want)
		}
	}
	d := reading("-1.0")["copied"]
	d.Uint64()
	check(t, d, outOfRange)
}

func TestFloat64(t *testing.T) {
	for _, x := range []struct {
		in   string
		want float64
		err  string
	}{
		{"0", 0, ""}, {"-0", math.Copysign(0, -1), ""}, {"1.5", 1.5, ""}, {"-1.5e-3", -1.5e-3, ""}, {"1E+2", 100, ""},
		{"0.1", 0.1, ""}, {"1.7976931348623157e308", math.MaxFloat64, ""}, {"5e-324", 5e-324, ""}, {"1e-400", 0, ""},
		{"1e400", 0, "number out of range"}, {"-1e400", 0, "number out of range"},
		{`"1"`, 0, "expected a number"}, {"null", 0, "expected a number"}, {"[]", 0, "expected a number"},
	} {
		d := reading(" " + x.in)["copied"]
		if got := d.Float64(); math.Float64bits(got) != math.Float64bits(x.want) {
			t.Errorf("%s: %v, want %v", x.in, got, x.want)
		}
		check(t, d, x.err)
	}
}

func TestMalformedNumbers(t *testing.T) {
	for _, in := range []string{"-", "+1", ".5", "1.", "1.e1", "1e", "1e+", "1e-", "--1", "-a", "0x10", "01", "-01", "00", "1_000", "Infinity", "NaN", "-Infinity", "1.2.3", "1e2e3", "1 2"} {
		for name, verb := range map[string]func(*Decoder){
			"Int64":   func(d *Decoder) { d.Int64() },
			"Uint16":  func(d *Decoder) { d.Uint16() },
			"Float64": func(d *Decoder) { d.Float64() },
			"Skip":    (*Decoder).Skip,
			"Form":    func(d *Decoder) { d.FormValue() },
		} {
			d := reading(in)["copied"]
			verb(d)
			var syntax *SyntaxError
			if err := d.Finish(); !errors.As(err, &syntax) {
				t.Errorf("%s: %s is accepted: %v", name, in, err)
			}
		}
	}
}

func TestAppendNumbers(t *testing.T) {
	for _, f := range []float64{0, math.Copysign(0, -1), 1, -1.5, 0.1, 1e-6, 1e-7, -1e-7, 123456789.125, 1e20, 1e21, -1e21, 5e-324, math.MaxFloat64, 1 << 53} {
		got, err := AppendFloat([]byte("x"), f)
		if err != nil || got[0] != 'x' || !json.Valid(got[1:]) {
			t.Fatalf("%v: %q, %v", f, got, err)
		}
		d := reading(string(got[1:]))["copied"]
		if back := d.Float64(); math.Float64bits(back) != math.Float64bits(f) {
			t.Errorf("%v became %s, which reads as %v", f, got[1:], back)
		}
		check(t, d, "")
	}
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if got, err := AppendFloat([]byte("x"), f); err == nil || string(got) != "x" {
			t.Errorf("%v: %q, %v", f, got, err)
		}
	}
	got := AppendUint(AppendInt(AppendBool(AppendBool(nil, true), false), math.MinInt64), math.MaxUint64)
	if want := "truefalse-922337203685477580818446744073709551615"; string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
}
