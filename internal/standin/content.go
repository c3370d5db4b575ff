package standin

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // which the services decode
	_ "image/jpeg"
	_ "image/png"
	"regexp"
	"slices"
	"strings"
)

// What the services refuse of images: https://platform.claude.com/docs/en/build-with-claude/vision for messages,
// https://developers.openai.com/api/docs/guides/images-vision for responses and chat; Ollama decodes PNG and JPEG.
const (
	maxEncoded = 5 << 20 // of messages
	maxSide    = 8000
	manyImages = 20
	manySide   = 2000
)

// judgeImage says why a service refuses one of some images; nil if it does not.
func judgeImage(api, mime, encoded string, count int) error {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return fmt.Errorf("an image that is not base64: %w", err)
	}
	takes := []string{"image/png", "image/jpeg", "image/gif", "image/webp"}
	if api == "ollama" {
		takes = takes[:2]
	}
	kind := "image/webp"
	var c image.Config
	if !bytes.HasPrefix(data, []byte("RIFF")) {
		var name string
		if c, name, err = image.DecodeConfig(bytes.NewReader(data)); err != nil {
			return errors.New("could not process image")
		}
		if kind = "image/" + name; c.Width*c.Height <= 1<<22 {
			if _, _, err := image.Decode(bytes.NewReader(data)); err != nil {
				return errors.New("could not process image")
			}
		}
	}
	switch {
	case !slices.Contains(takes, kind), mime != "" && mime != kind:
		return fmt.Errorf("an image of the type %q, which says that it is %q", kind, mime)
	case api == "messages" && len(encoded) > maxEncoded:
		return fmt.Errorf("image exceeds 5 MB maximum: %d bytes > %d bytes", len(encoded), maxEncoded)
	case api == "messages" && max(c.Width, c.Height) > maxSide:
		return errors.New("at least one of the image dimensions exceed max allowed size: 8000 pixels")
	case api == "messages" && count > manyImages && max(c.Width, c.Height) > manySide:
		return errors.New("at least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels")
	}
	return nil
}

// A sent image is one in a request.
type sent struct{ mime, data string }

// imagesOf returns the images in a part of a request, wherever they are.
func imagesOf(api string, v any) (all []sent) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			all = append(all, imagesOf(api, e)...)
		}
	case map[string]any:
		url, _ := v["image_url"].(string)
		switch o, _ := v["image_url"].(map[string]any); {
		case v["type"] == "image":
			source, _ := v["source"].(map[string]any)
			mime, _ := source["media_type"].(string)
			data, _ := source["data"].(string)
			return []sent{{mime, data}}
		case v["type"] == "image_url":
			url, _ = o["url"].(string)
		}
		if v["type"] == "input_image" || v["type"] == "image_url" {
			mime, data, _ := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
			return []sent{{mime, data}}
		}
		if list, ok := v["images"].([]any); ok && api == "ollama" {
			for _, e := range list {
				data, _ := e.(string)
				all = append(all, sent{"", data})
			}
		}
		for _, k := range []string{"messages", "input", "content", "output"} {
			all = append(all, imagesOf(api, v[k])...)
		}
	}
	return all
}

// judgeContent says why a service refuses the images or the tools of a request.
func (s *Server) judgeContent(api string, body []byte) error {
	var top map[string]any
	if err := json.Unmarshal(body, &top); err != nil {
		return err
	}
	all := imagesOf(api, top)
	for i, img := range all {
		key := fmt.Sprintf("%s %s %t %x", api, img.mime, len(all) > manyImages, sha256.Sum256([]byte(img.data)))
		var err error
		known := false
		s.note(func() { err, known = s.images[key] })
		if !known {
			err = judgeImage(api, img.mime, img.data, len(all))
			s.note(func() { s.images[key] = err })
		}
		if err != nil {
			return fmt.Errorf("image %d: %w", i, err)
		}
	}
	tools, _ := top["tools"].([]any)
	for i, v := range tools {
		t, _ := v.(map[string]any)
		if f, ok := t["function"].(map[string]any); ok {
			t = f
		}
		if t["type"] == "custom" {
			continue // its input is a text
		}
		schema := t["input_schema"]
		if schema == nil {
			schema = t["parameters"]
		}
		data, err := json.Marshal(schema)
		if err == nil {
			err = JudgeSchema(s.dialect(api), data)
		}
		if err != nil {
			return fmt.Errorf("tools.%d: %w", i, err)
		}
	}
	return nil
}

// dialect is what the service takes of JSON Schema.
func (s *Server) dialect(api string) string {
	if api == "chat" && s.o.Plain {
		return "plain"
	}
	return api
}

// judgeOllama says why Ollama refuses a conversation: it wants texts, and objects as the arguments of calls. Templates
// of models refuse two messages of the user in a row.
func (s *Server) judgeOllama(body []byte) error {
	var in struct {
		Model    string
		Messages []struct {
			Role, Content string
			Calls         []struct {
				Function struct {
					Name      string
					Arguments map[string]any
				}
			} `json:"tool_calls"`
		}
		Options map[string]any
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return err
	}
	if in.Model == "" || len(in.Messages) == 0 || in.Options["num_ctx"] == nil {
		return errors.New("model, messages or num_ctx is missing")
	}
	last := ""
	for i, m := range in.Messages {
		if m.Role == "user" && last == "user" {
			return fmt.Errorf("message %d: conversation roles must alternate", i)
		}
		last = m.Role
	}
	return nil
}

// names are those that members of the input of a tool may have in messages.
var names = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// JudgeSchema says why a service refuses the schema of a tool's input; nil if it does not. "plain" is what servers
// take that know a part of JSON Schema, such as Gemini's.
func JudgeSchema(api string, schema []byte) error {
	var top map[string]any
	if err := json.Unmarshal(schema, &top); err != nil || top == nil {
		return errors.New("a schema that is not an object")
	}
	if top["type"] != "object" {
		return errors.New("schema must have type 'object'")
	}
	for _, k := range []string{"oneOf", "anyOf", "allOf", "enum", "not", "const"} {
		if _, ok := top[k]; ok {
			return fmt.Errorf("input_schema does not support %s at the top level", k)
		}
	}
	properties, ok := top["properties"].(map[string]any)
	if !ok {
		return errors.New("object schema missing properties")
	}
	for name := range properties {
		if api == "messages" && !names.MatchString(name) {
			return fmt.Errorf("property keys should match pattern '%s': %q", names, name)
		}
	}
	if api == "ollama" {
		return judgeFields(schema)
	}
	return judgePart(api, top, top)
}

// judgeFields reads a schema into what Ollama keeps of one.
func judgeFields(schema []byte) error {
	type property struct {
		AnyOf       []json.RawMessage
		Type        any
		Items       any
		Description string
		Enum        []any
	}
	var o struct {
		Type       string
		Required   []string
		Properties map[string]property
	}
	return json.Unmarshal(schema, &o)
}

var plainly = []string{"type", "description", "enum", "properties", "required", "items", "anyOf", "minimum", "maximum", "minItems", "maxItems", "nullable", "format"}

var kindsOf = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

// judgePart judges a schema and those within it.
func judgePart(api string, top, o map[string]any) error {
	for k, v := range o {
		if api == "plain" && !slices.Contains(plainly, k) {
			return fmt.Errorf("unknown name %q: cannot find field", k)
		}
		var err error
		switch k {
		case "type":
			err = judgeType(api, v)
		case "properties", "$defs", "patternProperties":
			parts, ok := v.(map[string]any)
			if !ok {
				return fmt.Errorf("%s is not an object", k)
			}
			for _, p := range parts {
				err = errors.Join(err, judgeAny(api, top, p))
			}
		case "items", "additionalProperties", "not", "contains", "propertyNames":
			err = judgeAny(api, top, v)
		case "anyOf", "oneOf", "allOf", "prefixItems":
			list, ok := v.([]any)
			if !ok || len(list) == 0 {
				return fmt.Errorf("%s is not a list", k)
			}
			for _, p := range list {
				err = errors.Join(err, judgeAny(api, top, p))
			}
		case "required":
			err = judgeRequired(api, o, v)
		case "enum":
			err = judgeEnum(api, o, v)
		case "exclusiveMinimum", "exclusiveMaximum", "minimum", "maximum":
			if _, ok := v.(float64); !ok {
				err = fmt.Errorf("%s is not a number", k)
			}
		case "$ref":
			ref, _ := v.(string)
			defs, _ := top["$defs"].(map[string]any)
			if _, ok := defs[strings.TrimPrefix(ref, "#/$defs/")]; !ok {
				err = fmt.Errorf("a reference to an undefined schema: %q", ref)
			}
		}
		if err != nil {
			return err
		}
	}
	if _, has := o["items"]; !has && o["type"] == "array" {
		return errors.New("array schema missing items")
	}
	if _, has := o["anyOf"]; has && api == "plain" && (o["type"] != nil || o["properties"] != nil) {
		return errors.New("type and anyOf cannot be both populated")
	}
	return nil
}

func judgeAny(api string, top map[string]any, v any) error {
	switch v := v.(type) {
	case map[string]any:
		return judgePart(api, top, v)
	case bool:
		if api != "plain" {
			return nil
		}
	}
	return fmt.Errorf("%v is not a schema", v)
}

func judgeType(api string, v any) error {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	} else if api == "plain" {
		return errors.New("proto field is not repeating, cannot start list")
	}
	for _, t := range list {
		if name, ok := t.(string); !ok || !slices.Contains(kindsOf, name) {
			return fmt.Errorf("%v is not a type", t)
		}
	}
	return nil
}

func judgeRequired(api string, o map[string]any, v any) error {
	list, ok := v.([]any)
	if !ok {
		return fmt.Errorf("%v is not of type 'array'", v)
	}
	properties, _ := o["properties"].(map[string]any)
	for _, n := range list {
		name, ok := n.(string)
		if _, has := properties[name]; !ok || !has && api == "plain" {
			return fmt.Errorf("required: %v: property is not defined", n)
		}
	}
	return nil
}

func judgeEnum(api string, o map[string]any, v any) error {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return errors.New("enum is not a list")
	}
	for _, e := range list {
		if _, ok := e.(string); api == "plain" && (!ok || o["type"] != "string") {
			return fmt.Errorf("invalid value at enum (TYPE_STRING), %v", e)
		}
	}
	return nil
}
