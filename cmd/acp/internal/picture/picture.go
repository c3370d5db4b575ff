// Package picture makes images fit for the interfaces of language models. An interface refuses a whole
// conversation for one image that is too large, of another type than it says, or damaged; so images are
// looked at before they become part of one.
//
// Bounds: 20 MiB and 40 million pixels of an image; one image is decoded at a time.
package picture

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"slices"
	"sync"
)

// Bounds of the images that are looked at.
const (
	MaxData   = 20 << 20
	MaxPixels = 40_000_000
)

// Limits are what an interface takes.
type Limits struct {
	Encoded int      // bytes of an image in base64
	Side    int      // pixels of its longer side
	Types   []string // MIME types
}

// Common is what all interfaces take that are known: 5 MB in base64, as Messages counts them, 2000 pixels,
// which that interface permits however many images a conversation has, and types that are not animated.
var Common = Limits{Encoded: 5 << 20, Side: 2000, Types: []string{"image/png", "image/jpeg", "image/webp"}}

// A Picture is an image as it can be sent.
type Picture struct {
	MIMEType string // as the data says it
	Data     []byte
}

// kinds are the types that are known, by how their data begins.
var kinds = []struct{ magic, mime string }{
	{"\x89PNG\r\n\x1a\n", "image/png"}, {"\xff\xd8\xff", "image/jpeg"}, {"GIF87a", "image/gif"}, {"GIF89a", "image/gif"},
}

// Kind returns the type of an image by its data; "" if it is none that is known.
func Kind(data []byte) string {
	for _, k := range kinds {
		if bytes.HasPrefix(data, []byte(k.magic)) {
			return k.mime
		}
	}
	if isWebP(data) {
		return "image/webp"
	}
	return ""
}

// Fits reports whether an image can be sent as it is, as far as its size, its type and its header say.
// That it can be decoded is not checked.
func Fits(p Picture, l Limits) bool {
	kind := Kind(p.Data)
	if kind == "" || kind != p.MIMEType || !slices.Contains(l.Types, kind) {
		return false
	}
	w, h, err := size(kind, p.Data)
	return err == nil && small(p.Data, w, h, l)
}

// Size returns the width and the height of an image in pixels, as its header says them; false if it is none that is
// known, or its header is damaged.
func Size(data []byte) (w, h int, ok bool) {
	kind := Kind(data)
	if kind == "" {
		return 0, 0, false
	}
	w, h, err := size(kind, data)
	return w, h, err == nil
}

// small reports whether an image has not too many bytes or pixels.
func small(data []byte, w, h int, l Limits) bool {
	return base64.StdEncoding.EncodedLen(len(data)) <= l.Encoded && max(w, h) <= l.Side
}

// size returns the width and the height that the header of an image says.
func size(kind string, data []byte) (w, h int, err error) {
	var c image.Config
	switch kind {
	case "image/png":
		c, err = png.DecodeConfig(bytes.NewReader(data))
	case "image/jpeg":
		c, err = jpeg.DecodeConfig(bytes.NewReader(data))
	case "image/gif":
		c, err = gif.DecodeConfig(bytes.NewReader(data))
	default:
		c.Width, c.Height, err = webpSize(data)
	}
	if err == nil && (c.Width <= 0 || c.Height <= 0) {
		err = errors.New("it has no pixels")
	}
	return c.Width, c.Height, err
}

// decoding lets one image be decoded at a time: each may take some hundred MB.
var decoding sync.Mutex

// Fit returns an image as an interface takes it: as it is, if that can be sent and can be decoded; otherwise
// made smaller, or of another type. The error says why it cannot be sent.
func Fit(data []byte, l Limits) (Picture, error) {
	kind := Kind(data)
	switch {
	case len(data) == 0:
		return Picture{}, errors.New("it is empty")
	case kind == "":
		return Picture{}, errors.New("it is not a PNG, JPEG, GIF or WebP image")
	case len(data) > MaxData:
		return Picture{}, fmt.Errorf("it has more than %d MiB", MaxData>>20)
	}
	w, h, err := size(kind, data)
	if err != nil && !unsupported(err) {
		return Picture{}, fmt.Errorf("it is damaged: %w", err)
	}
	if err == nil && w > MaxPixels/h {
		return Picture{}, fmt.Errorf("it has %d × %d pixels, which is more than %d million", w, h, MaxPixels/1_000_000)
	}
	sendable := err == nil && small(data, w, h, l) && slices.Contains(l.Types, kind)
	if kind == "image/webp" { // which cannot be decoded here
		if !sendable {
			return Picture{}, fmt.Errorf("it is a WebP image of %d × %d pixels, which cannot be made smaller or converted here: make a PNG or JPEG of it", w, h)
		}
		return Picture{kind, data}, nil
	}
	decoding.Lock()
	defer decoding.Unlock()
	img, err := decode(kind, data)
	switch {
	case err != nil && unsupported(err) && sendable:
		return Picture{kind, data}, nil // others may know that kind of it
	case err != nil:
		return Picture{}, fmt.Errorf("it is damaged: %w", err)
	case sendable:
		return Picture{kind, data}, nil
	}
	return shrink(img, kind, l)
}

func decode(kind string, data []byte) (image.Image, error) {
	switch r := bytes.NewReader(data); kind {
	case "image/png":
		return png.Decode(r)
	case "image/jpeg":
		return jpeg.Decode(r)
	default:
		return gif.Decode(r) // the first image of several
	}
}

// unsupported reports whether an image is of a kind that the decoders do not know, and may be well.
func unsupported(err error) bool {
	_, ofPNG := errors.AsType[png.UnsupportedError](err)
	_, ofJPEG := errors.AsType[jpeg.UnsupportedError](err)
	return ofPNG || ofJPEG
}

// shrink encodes an image anew, smaller and smaller until it fits.
func shrink(img image.Image, kind string, l Limits) (Picture, error) {
	w, h := img.Bounds().Dx(), img.Bounds().Dy()
	long := min(max(w, h), l.Side)
	for range 8 {
		now := img
		if long < max(w, h) {
			now = scale(img, max(1, w*long/max(w, h)), max(1, h*long/max(w, h)))
		}
		if kind != "image/jpeg" && slices.Contains(l.Types, "image/png") {
			var b bytes.Buffer
			if err := png.Encode(&b, now); err != nil {
				return Picture{}, err
			}
			if base64.StdEncoding.EncodedLen(b.Len()) <= l.Encoded {
				return Picture{"image/png", b.Bytes()}, nil
			}
		}
		var b bytes.Buffer
		if err := jpeg.Encode(&b, opaque(now), &jpeg.Options{Quality: 85}); err != nil {
			return Picture{}, err
		}
		if base64.StdEncoding.EncodedLen(b.Len()) <= l.Encoded {
			return Picture{"image/jpeg", b.Bytes()}, nil
		}
		long = long * 2 / 3
	}
	return Picture{}, errors.New("it cannot be made small enough")
}

// opaque returns an image on white, since a JPEG cannot be transparent.
func opaque(img image.Image) image.Image {
	if o, ok := img.(interface{ Opaque() bool }); !ok || o.Opaque() {
		return img
	}
	on := image.NewRGBA(img.Bounds())
	draw.Draw(on, on.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(on, on.Bounds(), img, img.Bounds().Min, draw.Over)
	return on
}

// scale returns an image that is smaller in both directions, or as large: each pixel is the mean of those that
// it covers.
func scale(img image.Image, w, h int) *image.RGBA {
	b := img.Bounds()
	dst := image.NewRGBA(image.Rect(0, 0, w, h))
	row := image.NewRGBA(image.Rect(0, 0, b.Dx(), 1))
	narrow := make([]float32, 4*w)
	sum, next := make([]float32, 4*w), make([]float32, 4*w)
	fx, fy := float64(w)/float64(b.Dx()), float64(h)/float64(b.Dy())
	at := 0
	flush := func() {
		for i, v := range sum {
			dst.Pix[at*dst.Stride+i] = uint8(min(v+0.5, 255))
		}
		sum, next = next, sum
		clear(next)
		at++
	}
	for y := range b.Dy() {
		draw.Draw(row, row.Bounds(), img, image.Pt(b.Min.X, b.Min.Y+y), draw.Src)
		clear(narrow)
		for x := range b.Dx() {
			first, low, high := share(x, fx, w)
			for c := range 4 {
				v := float32(row.Pix[4*x+c])
				narrow[4*first+c] += v * low
				if high > 0 {
					narrow[4*first+4+c] += v * high
				}
			}
		}
		first, low, high := share(y, fy, h)
		for at < first {
			flush()
		}
		for i, v := range narrow {
			sum[i] += v * low
			next[i] += v * high
		}
	}
	for at < h {
		flush()
	}
	return dst
}

// share says which of n pixels the pixel i of a larger image covers: a share of the first one, and of the one
// after it.
func share(i int, f float64, n int) (first int, low, high float32) {
	start, end := float64(i)*f, float64(i+1)*f
	first = min(int(start), n-1)
	if edge := float64(first + 1); end > edge && first+1 < n {
		return first, float32(edge - start), float32(end - edge)
	}
	return first, float32(f), 0
}
