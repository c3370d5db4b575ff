package view

import (
	"image/color"
	"maps"
	"slices"
)

// A tone is a colour on dark and on light backgrounds.
type tone struct{ dark, light uint32 }

// A palette has the colours of a theme. Each can be read on all backgrounds that are usual.
type palette struct {
	dim, accent, user, code, good, bad            tone
	keyword, number, typ                          tone
	added, removed, addedWord, removedWord, found tone
	// The backgrounds of changes among 256 colours, because of those the nearest to a dark one is
	// often another: green becomes grey.
	changed256 [4][2]byte
}

// greenRed are the backgrounds of changes in all palettes but one.
var greenRed = [4][2]byte{{22, 194}, {52, 224}, {22, 151}, {52, 217}}

// standard is the palette without a name of its own.
const standard = "auto"

var palettes = map[string]palette{
	standard: {
		dim:         tone{0x8f95a6, 0x626776},
		accent:      tone{0x7aa2f7, 0x2753b5},
		user:        tone{0x7dcfff, 0x006075},
		code:        tone{0xe0af68, 0x7d5200},
		good:        tone{0x9ece6a, 0x226b27},
		bad:         tone{0xf7768e, 0xb3261e},
		keyword:     tone{0xbb9af7, 0x7338ac},
		number:      tone{0xff9e64, 0x954400},
		typ:         tone{0x2ac3de, 0x00657d},
		added:       tone{0x1a2e22, 0xe6f7e9},
		removed:     tone{0x3a2127, 0xfeecee},
		addedWord:   tone{0x1f4933, 0xbcecc6},
		removedWord: tone{0x642a36, 0xfbcdd2},
		found:       tone{0x4d3f16, 0xffedb8},
		changed256:  greenRed,
	},
	"contrast": {
		dim:         tone{0xc0c0c0, 0x404040},
		accent:      tone{0x82b1ff, 0x0000c0},
		user:        tone{0x5fffff, 0x00505f},
		code:        tone{0xffd75f, 0x5f4000},
		good:        tone{0x5fff5f, 0x005000},
		bad:         tone{0xff8a8a, 0xa00000},
		keyword:     tone{0xff9cff, 0x600080},
		number:      tone{0xffb86c, 0x803000},
		typ:         tone{0x5fffd7, 0x005060},
		added:       tone{0x003b00, 0xd0ffd0},
		removed:     tone{0x4a0000, 0xffdcdc},
		addedWord:   tone{0x006000, 0x90f090},
		removedWord: tone{0x8a0000, 0xffb0b0},
		found:       tone{0x4f4f00, 0xffe97f},
		changed256:  greenRed,
	},
	"colorblind": {
		dim:         tone{0xa2a7b5, 0x626776},
		accent:      tone{0xb7a5ff, 0x5b3fb5},
		user:        tone{0x7dcfff, 0x006075},
		code:        tone{0xe0af68, 0x7d5200},
		good:        tone{0x6cb6ff, 0x0550ae},
		bad:         tone{0xffa657, 0x953800},
		keyword:     tone{0xbb9af7, 0x7338ac},
		number:      tone{0xff9e64, 0x954400},
		typ:         tone{0x2ac3de, 0x00657d},
		added:       tone{0x0c2d55, 0xddf0ff},
		removed:     tone{0x4d2c00, 0xfff0dd},
		addedWord:   tone{0x1a4d8f, 0xa5d8ff},
		removedWord: tone{0x7a4600, 0xffcf99},
		found:       tone{0x444444, 0xe0e0e0},
		changed256:  [4][2]byte{{17, 195}, {52, 223}, {17, 117}, {52, 216}},
	},
	"solarized": {
		dim:         tone{0x93a1a1, 0x54686f},
		accent:      tone{0x56a5dc, 0x1d6aa0},
		user:        tone{0x46ada5, 0x1d716a},
		code:        tone{0xbf9821, 0x7f6000},
		good:        tone{0x95a621, 0x5d6b00},
		bad:         tone{0xe97e7c, 0xbf2c29},
		keyword:     tone{0x9599d5, 0x5b5fa5},
		number:      tone{0xdd8865, 0xb14113},
		typ:         tone{0x46ada5, 0x1d716a},
		added:       tone{0x0d3a2a, 0xe6efcf},
		removed:     tone{0x44262a, 0xfadfd3},
		addedWord:   tone{0x17553c, 0xc3dc97},
		removedWord: tone{0x6a2f33, 0xf3b9a5},
		found:       tone{0x4a4210, 0xf5e3a8},
		changed256:  greenRed,
	},
	"gruvbox": {
		dim:         tone{0xafa18e, 0x665c54},
		accent:      tone{0x89aa9d, 0x076678},
		user:        tone{0x8ec07c, 0x3b6d4e},
		code:        tone{0xfabd2f, 0x88580f},
		good:        tone{0xb8bb26, 0x6a660c},
		bad:         tone{0xfc7c6d, 0x9d0006},
		keyword:     tone{0xd68ea2, 0x8f3f71},
		number:      tone{0xfe8019, 0xaf3a03},
		typ:         tone{0x8ec07c, 0x3b6d4e},
		added:       tone{0x32361a, 0xe9f0c6},
		removed:     tone{0x442020, 0xf9dccb},
		addedWord:   tone{0x4d531f, 0xcbd98a},
		removedWord: tone{0x6f2b28, 0xf3b79b},
		found:       tone{0x504416, 0xf7df9c},
		changed256:  greenRed,
	},
	"nord": {
		dim:         tone{0x9aa5ba, 0x5c6679},
		accent:      tone{0x85a4c3, 0x4a688f},
		user:        tone{0x88c0d0, 0x2f6e7f},
		code:        tone{0xebcb8b, 0x875f00},
		good:        tone{0xa3be8c, 0x4e6f37},
		bad:         tone{0xdb8a92, 0xa5404b},
		keyword:     tone{0xb996b3, 0x84517b},
		number:      tone{0xd4917b, 0x96562a},
		typ:         tone{0x8fbcbb, 0x2f6f6e},
		added:       tone{0x28382f, 0xe6f0e0},
		removed:     tone{0x432f38, 0xf7e1e3},
		addedWord:   tone{0x37543f, 0xc4dcb6},
		removedWord: tone{0x6d3f4a, 0xeebcc2},
		found:       tone{0x4c4632, 0xf3e3b5},
		changed256:  greenRed,
	},
}

// Palettes returns the names of the palettes that [NewTheme] knows, sorted.
func Palettes() []string { return slices.Sorted(maps.Keys(palettes)) }

// Colors returns some colours of a palette for what is drawn around a conversation. ok is false for
// the standard palette and names that are not known.
func Colors(name string, dark bool) (dim, accent, warn, bad, good color.Color, ok bool) {
	p, ok := palettes[name]
	if !ok || name == standard {
		return nil, nil, nil, nil, nil, false
	}
	return p.dim.on(dark), p.accent.on(dark), p.code.on(dark), p.bad.on(dark), p.good.on(dark), true
}

func (t tone) on(dark bool) color.Color {
	rgb := t.light
	if dark {
		rgb = t.dark
	}
	return color.RGBA{byte(rgb >> 16), byte(rgb >> 8), byte(rgb), 255}
}
