//go:build unix

package chromium

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"testing"

	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m, Close) }

// TestFewer: a picture with few colours keeps them, and one with many becomes one of 256.
func TestFewer(t *testing.T) {
	for _, tt := range []struct {
		name   string
		colour func(x, y int) color.RGBA
		same   bool
	}{
		{"two", func(x, _ int) color.RGBA { return color.RGBA{uint8(x % 2 * 200), 10, 20, 255} }, true},
		{"many", func(x, y int) color.RGBA { return color.RGBA{uint8(x * 4), uint8(y * 4), uint8(x ^ y), 255} }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			img := image.NewRGBA(image.Rect(0, 0, 64, 64))
			for x := range 64 {
				for y := range 64 {
					img.Set(x, y, tt.colour(x, y))
				}
			}
			var b bytes.Buffer
			if err := png.Encode(&b, img); err != nil {
				t.Fatal(err)
			}
			data, err := fewer(b.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			got, err := png.Decode(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			out, ok := got.(*image.Paletted)
			if !ok || len(out.Palette) > 256 || out.Bounds() != img.Bounds() {
				t.Fatalf("%T", got)
			}
			if color.RGBAModel.Convert(out.At(3, 5)) != img.At(3, 5) && tt.same {
				t.Errorf("%v instead of %v", out.At(3, 5), img.At(3, 5))
			}
		})
	}
}
