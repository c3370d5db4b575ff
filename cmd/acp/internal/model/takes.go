package model

import (
	"slices"

	"github.com/goacp/acp/cmd/acp/internal/model/schema"
	"github.com/goacp/acp/cmd/acp/internal/picture"
)

// An API is an interface of providers, as far as it matters what it takes of a conversation. The zero value takes what
// all take.
type API string

// The interfaces.
const (
	APIMessages  API = "messages"
	APIResponses API = "responses"
	APIChat      API = "chat"   // Chat Completions of any server
	APIOpenAI    API = "openai" // Chat Completions of OpenAI itself, which knows all of JSON Schema
	APIOllama    API = "ollama"
)

// A take is what an interface takes.
type take struct {
	pictures picture.Limits
	schemas  schema.Dialect
}

// takes has what the interfaces take. What their documentation, their clients and their refusals say of it was read on
// 2026-11-29:
//
//   - Messages: https://platform.claude.com/docs/en/build-with-claude/vision. 5 MB of an image in base64, 8000 pixels,
//     and 2000 where a request has more than 20 images. Schemas: no oneOf, anyOf or allOf at the top, names of 64
//     characters.
//   - Responses, and Chat Completions of OpenAI: https://developers.openai.com/api/docs/guides/images-vision. PNG,
//     JPEG, WebP, and GIFs that are not animated; 20 MB of an image, 500 images and 50 MB of images in a request, also
//     in refusals of July 2026 (open-webui/open-webui#26967); no bound of pixels is named. Schemas: an object at the
//     top that has no oneOf, anyOf, allOf, enum, const or not, which are the words of a refusal, and arrays with
//     items.
//   - Chat Completions of others. Gemini takes PNG, JPEG, WebP and HEIC, but no GIF, 7 MB of an image, 900 to 3,000
//     images by model
//     (https://docs.cloud.google.com/gemini-enterprise-agent-platform/models/capabilities/image-understanding), and 20
//     MB in a request (https://firebase.google.com/docs/ai-logic/input-file-requirements); it makes larger images than
//     3072 pixels smaller by itself. Of schemas it takes the members of Schema in @google/genai 2.32: one type, enum
//     of strings only, anyOf, no $ref. Other servers pass on to one or the other, or to grammars that know as little.
//   - Ollama 0.17 decodes PNG, JPEG and WebP (server/routes.go); older versions refuse WebP (ollama/ollama#7388), so
//     it is left out. Some models take one image in a request, and refuse more with 400. It reads schemas into type,
//     anyOf, items, description, enum and properties, and required and $defs at the top (api/types.go).
//
// What a request has of images in all is not counted: a provider that refuses it answers 400 or 413, and the agent
// leaves out the new ones, or compacts the conversation.
var takes = map[API]take{
	APIMessages:  {picture.Common, schema.Dialect{Names: schema.Names64}},
	APIResponses: {picture.Limits{Encoded: 20 << 20, Side: 8000, Types: picture.Common.Types}, schema.Dialect{}},
	APIOpenAI:    {picture.Limits{Encoded: 20 << 20, Side: 8000, Types: picture.Common.Types}, schema.Dialect{}},
	APIChat:      {picture.Common, schema.Dialect{Plain: true}},
	APIOllama:    {picture.Limits{Encoded: picture.Common.Encoded, Side: picture.Common.Side, Types: []string{"image/png", "image/jpeg"}}, schema.Dialect{Plain: true}},
}

func (i Info) takes() take {
	if t, ok := takes[i.API]; ok {
		return t
	}
	return take{pictures: picture.Common}
}

// Picture returns an image as the model can be sent it: an [*Image], or a [*Text] that says why it is not there.
func (i Info) Picture(img *Image) Part {
	l := i.takes().pictures
	if !i.Images {
		return &Text{Text: "(An image is here, which you cannot see.)"}
	}
	if picture.Fits(picture.Picture{MIMEType: img.MIMEType, Data: img.Data}, l) {
		return img
	}
	p, err := picture.Fit(img.Data, l)
	if err != nil {
		return &Text{Text: "(An image is not here: " + err.Error() + ".)"}
	}
	return &Image{MIMEType: p.MIMEType, Data: p.Data}
}

// Pictured returns parts with their images as [Info.Picture] makes them.
func (i Info) Pictured(parts []Part) []Part {
	all := slices.Clone(parts)
	for n, p := range all {
		if img, ok := p.(*Image); ok {
			all[n] = i.Picture(img)
		}
	}
	return all
}

// Tool returns a tool as the interface of the model takes it. The error says why it takes none like that.
func (i Info) Tool(t Tool) (Tool, error) {
	fitted, note, err := i.takes().schemas.Fit(t.Schema)
	if err != nil {
		return Tool{}, err
	}
	if t.Schema = fitted; note != "" {
		t.Description += "\n" + note
	}
	return t, nil
}

// Tools returns those of some tools that the interface of the model takes, as it takes them.
func (i Info) Tools(all []Tool) []Tool {
	fitted := make([]Tool, 0, len(all))
	for _, t := range all {
		if t, err := i.Tool(t); err == nil {
			fitted = append(fitted, t)
		}
	}
	return fitted
}
