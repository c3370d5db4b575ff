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

// takes has what the interfaces take, as their documentation or their refusals say:
//
//   - Messages: https://platform.claude.com/docs/en/build-with-claude/vision. 5 MB of an image in base64, 8000 pixels, and
//     2000 where a request has more than 20 images. Schemas: no oneOf, anyOf or allOf at the top, names of 64 characters.
//   - Responses, and Chat Completions of OpenAI: https://developers.openai.com/api/docs/guides/images-vision. Some hundred
//     MB in all; GIFs must not be animated. Schemas: an object at the top that is nothing else, arrays with items.
//   - Chat Completions of others: Gemini takes 7 MB of an image and no GIF
//     (https://docs.cloud.google.com/gemini-enterprise-agent-platform/models/capabilities/image-understanding), and of
//     schemas what https://ai.google.dev/api/caching#Schema lists. Other servers pass on to one or the other, or to
//     grammars that know as little.
//   - Ollama: PNG and JPEG (https://docs.ollama.com/capabilities/vision); older versions refuse WebP. It reads schemas into
//     a structure with few fields.
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
