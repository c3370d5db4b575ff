package agent

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/png"
	"math/rand/v2"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/picture"
)

// drawn is a PNG of a size, of noise where it is to be long.
func drawn(t *testing.T, w, h int, noise bool) []byte {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range img.Pix {
		if img.Pix[i] = 255; noise {
			img.Pix[i] = uint8(rng.Uint32())
		}
	}
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// images returns the images of some parts, with those of results.
func images(parts []model.Part) (all []*model.Image) {
	for _, p := range parts {
		switch p := p.(type) {
		case *model.Image:
			all = append(all, p)
		case *model.ToolResult:
			all = append(all, images(p.Parts)...)
		}
	}
	return all
}

// TestPictures: whatever images a prompt, a file or a server has, the model gets those that can be sent, made fit, and
// for the others a text that says why; the user learns of it.
func TestPictures(t *testing.T) {
	wide := drawn(t, 8001, 2, false)
	damaged := wide[:len(wide)-30]
	versions(t, func(t *testing.T, v int) {
		w, with := scripted(t, "use read {\"path\":\"wide.png\"}\nuse read {\"path\":\"damaged.png\"}\nuse mcp__far__shoot {}\n---\nsay seen")
		k := start(t, v, with, func(k *talk) {
			k.client.MCP = answering(mcp.Tool{Name: "shoot", InputSchema: json.RawMessage(`{"type":"object"}`)},
				&mcp.ImageContent{MIMEType: "image/jpeg", Data: wide}, &mcp.ImageContent{MIMEType: "image/png", Data: damaged})
		})
		k.write("wide.png", string(wide))
		k.write("damaged.png", string(damaged))
		var err error
		servers := []acp.MCPServer{&acp.MCPServerACP{Name: "far", ServerID: "far-1"}}
		if v == 1 {
			servers = nil // which version 1 does not have
		}
		if k.session, err = k.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: k.cwd, MCPServers: servers}); err != nil {
			t.Fatal(err)
		}
		encode := base64.StdEncoding.EncodeToString
		got := k.tell("What is this?", &acp.ImageContent{MIMEType: "image/png", Data: encode(wide)},
			&acp.ImageContent{MIMEType: "image/png", Data: encode(damaged)}, &acp.ImageContent{MIMEType: "image/png", Data: "!"})
		contains(t, got, "The model does not get an image", ": it is damaged", ": it is not base64.", "seen")
		prompt, results := w.requests[0].Messages[0], w.requests[1].Messages[2]
		contains(t, messageText(prompt), "which you do not get: it is damaged", "which you do not get: it is not base64")
		contains(t, messageText(results), "the image cannot be shown: it is damaged")
		want := map[int]int{1: 1, 2: 2}[v]
		if v == 2 {
			contains(t, messageText(results), "(An image is not here: it is damaged")
		}
		if len(images(prompt.Parts)) != 1 || len(images(results.Parts)) != want {
			t.Errorf("%d and %d images", len(images(prompt.Parts)), len(images(results.Parts)))
		}
		for _, i := range append(images(prompt.Parts), images(results.Parts)...) {
			if !picture.Fits(picture.Picture{MIMEType: i.MIMEType, Data: i.Data}, picture.Common) {
				t.Errorf("%s of %d bytes does not fit", i.MIMEType, len(i.Data))
			}
		}
	})
}
