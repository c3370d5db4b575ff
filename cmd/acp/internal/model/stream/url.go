package stream

import (
	"fmt"
	"net/url"
)

// BaseURL parses the base URL of a provider. It fails unless base is one of http or https.
func BaseURL(base string) (*url.URL, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("the base URL %q is not one of http or https", base)
	}
	return u, nil
}
