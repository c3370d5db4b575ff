package picture

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"
)

// drawn is an image with gradients, or with noise, which does not compress.
func drawn(w, h int, noise bool) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range img.Pix {
		img.Pix[i] = uint8(i / 4 % w)
		if noise {
			img.Pix[i] = uint8(rng.Uint32())
		}
		if i%4 == 3 {
			img.Pix[i] = 255
		}
	}
	return img
}

func encoded(t *testing.T, kind string, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch kind {
	case "png":
		err = (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, img)
	case "jpeg":
		err = jpeg.Encode(&b, img, nil)
	case "gif":
		err = gif.Encode(&b, img, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// webp is the header of a WebP image with chunks.
func webp(chunks ...string) []byte {
	body := "WEBP" + strings.Join(chunks, "")
	return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(body))), body...)
}

func lossy(w, h int) string {
	b := binary.LittleEndian.AppendUint16([]byte("VP8 \x0c\x00\x00\x00\x00\x00\x00\x9d\x01\x2a"), uint16(w))
	return string(binary.LittleEndian.AppendUint16(b, uint16(h))) + "xx"
}

// TestFit: what can be sent stays as it is; what is too large is made smaller; what cannot be sent says why.
func TestFit(t *testing.T) {
	small := Limits{Encoded: 40_000, Side: 100, Types: Common.Types}
	good := encoded(t, "png", drawn(100, 50, false))
	for _, tt := range []struct {
		name   string
		data   []byte
		limits Limits
		kind   string // "" if it cannot be sent
		same   bool
		why    string
	}{
		{"at the bounds", good, small, "image/png", true, ""},
		{"one pixel too wide", encoded(t, "png", drawn(101, 50, false)), small, "image/png", false, ""},
		{"one byte too long", good, Limits{base64.StdEncoding.EncodedLen(len(good)) - 4, 100, Common.Types}, "", false, ""},
		{"noise of too many bytes", encoded(t, "png", drawn(100, 100, true)), small, "image/jpeg", false, ""},
		{"JPEG", encoded(t, "jpeg", drawn(90, 90, false)), small, "image/jpeg", true, ""},
		{"wide JPEG", encoded(t, "jpeg", drawn(400, 3, false)), small, "image/jpeg", false, ""},
		{"GIF", encoded(t, "gif", drawn(50, 50, false)), small, "image/png", false, ""},
		{"JPEG only", good, Limits{40_000, 100, []string{"image/jpeg"}}, "image/jpeg", false, ""},
		{"WebP", webp(lossy(64, 32)), small, "image/webp", true, ""},
		{"wide WebP", webp(lossy(640, 32)), small, "", false, "WebP image of 640 × 32 pixels"},
		{"animated WebP", webp("VP8X\x0a\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x01\x00\x00"), small, "", false, "animated"},
		{"WebP that is cut off", webp(lossy(64, 32))[:25], small, "", false, "cut off"},
		{"PNG that is cut off", good[:len(good)-30], small, "", false, "damaged"},
		{"PNG with a wrong byte", flipped(good), small, "", false, "damaged"},
		{"only the beginning", []byte("\x89PNG\r\n\x1a\n"), small, "", false, "damaged"},
		{"no image", []byte("hello"), small, "", false, "not a PNG"},
		{"nothing", nil, small, "", false, "empty"},
		{"too many bytes", append(good[:len(good):len(good)], make([]byte, MaxData)...), small, "", false, "20 MiB"},
		{"a bomb", bomb(good), small, "", false, "pixels, which is more than 40 million"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Fit(tt.data, tt.limits)
			if tt.kind == "" && tt.why != "" {
				if err == nil || !strings.Contains(err.Error(), tt.why) {
					t.Fatalf("%v, want %s", err, tt.why)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if tt.kind != "" && p.MIMEType != tt.kind || bytes.Equal(p.Data, tt.data) != tt.same || !Fits(p, tt.limits) {
				t.Errorf("%s, %d bytes of %d", p.MIMEType, len(p.Data), len(tt.data))
			}
		})
	}
}

func flipped(data []byte) []byte {
	data = bytes.Clone(data)
	data[len(data)/2] ^= 0x40
	return data
}

// bomb is a small file that says it has 60000 × 60000 pixels.
func bomb(data []byte) []byte {
	data = bytes.Clone(data)
	binary.BigEndian.PutUint32(data[16:], 60000)
	binary.BigEndian.PutUint32(data[20:], 60000)
	binary.BigEndian.PutUint32(data[29:], crc32.ChecksumIEEE(data[12:29])) // of the header
	return data
}

// TestCommon: an image beyond the bounds of the interfaces comes out within them.
func TestCommon(t *testing.T) {
	data := encoded(t, "png", drawn(2001, 1200, true))
	if Fits(Picture{"image/png", data}, Common) {
		t.Fatalf("%d bytes fit", len(data))
	}
	p, err := Fit(data, Common)
	if err != nil || !Fits(p, Common) {
		t.Fatalf("%s, %d bytes, %v", p.MIMEType, len(p.Data), err)
	}
	img, _, err := image.Decode(bytes.NewReader(p.Data))
	if err != nil || img.Bounds().Dx() != 2000 || img.Bounds().Dy() != 1199 {
		t.Errorf("%v, %v", img.Bounds(), err)
	}
}

// TestScale: each pixel is the mean of those that it covers, and transparent ones count for nothing.
func TestScale(t *testing.T) {
	img := image.NewNRGBA(image.Rect(5, 5, 8, 6)) // three pixels
	img.SetNRGBA(5, 5, color.NRGBA{90, 0, 0, 255})
	img.SetNRGBA(6, 5, color.NRGBA{0, 90, 0, 255})
	img.SetNRGBA(7, 5, color.NRGBA{0, 0, 90, 0})
	got := scale(img, 2, 1)
	want := []uint8{60, 30, 0, 255, 0, 30, 0, 85}
	if !bytes.Equal(got.Pix, want) {
		t.Errorf("%v, want %v", got.Pix, want)
	}
	if one := scale(drawn(37, 41, true), 37, 41); one.Bounds().Dx() != 37 || one.Pix[0] != drawn(37, 41, true).Pix[0] {
		t.Error("an image of the same size is another one")
	}
	if r, _, b, a := opaque(img).At(7, 5).RGBA(); r != 0xffff || b != 0xffff || a != 0xffff {
		t.Error("what is transparent is not white")
	}
}

func FuzzFit(f *testing.F) {
	f.Add([]byte("\x89PNG\r\n\x1a\n"))
	f.Add(webp(lossy(3, 4)))
	f.Add([]byte("GIF89a"))
	f.Add([]byte("RIFF\x00\x00\x00\x00WEBP00000000"))
	f.Fuzz(func(t *testing.T, data []byte) {
		l := Limits{Encoded: 20_000, Side: 50, Types: Common.Types}
		if w, h, err := size(Kind(data), data); err == nil && w*h > 1<<20 {
			return // slow, and no other code
		}
		if p, err := Fit(data, l); err == nil && !Fits(p, l) {
			t.Errorf("%s of %d bytes does not fit", p.MIMEType, len(p.Data))
		}
	})
}
