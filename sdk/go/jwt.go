package sso

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"regexp"
	"strings"
)

const maxToken = 16 * 1024

var (
	jwtShape = regexp.MustCompile(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)
	// Members of a header that would change how it is read.
	unsupported = []string{"crit", "zip", "b64"}
)

// A parsedJWT is not verified yet.
type parsedJWT struct {
	kid, algorithm string
	signed         []byte
	signature      []byte
	payload        string
}

func parseJWT(text string) (*parsedJWT, error) {
	if len(text) > maxToken || !jwtShape.MatchString(text) {
		return nil, refuse(Malformed, "this is no JWT")
	}
	parts := strings.Split(text, ".")
	header, ok := parsePart(parts[0])
	if !ok {
		return nil, refuse(Malformed, "the header is no JSON object")
	}
	kid, _ := header["kid"].(string)
	kind, hasKind := header["typ"]
	name, _ := kind.(string)
	if kid == "" || (hasKind && !strings.EqualFold(name, "JWT")) {
		return nil, refuse(Malformed, "this is another kind of JWT")
	}
	for _, member := range unsupported {
		if _, exists := header[member]; exists {
			return nil, refuse(Malformed, "the header has "+member)
		}
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return nil, refuse(Malformed, "the signature is not base64url")
	}
	algorithm, _ := header["alg"].(string)
	return &parsedJWT{kid, algorithm, []byte(parts[0] + "." + parts[1]), signature, parts[1]}, nil
}

func parsePart(part string) (map[string]interface{}, bool) {
	content, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return nil, false
	}
	object, ok := parseObject(content)
	return object, ok && !hasTwice(json.NewDecoder(bytes.NewReader(content)))
}

// hasTwice reads a JSON value, and returns whether an object in it has two members of one name: programs would not
// agree on which counts.
func hasTwice(decoder *json.Decoder) bool {
	token, _ := decoder.Token()
	names := map[json.Token]bool{}
	for (token == json.Delim('{') || token == json.Delim('[')) && decoder.More() {
		if token == json.Delim('{') {
			name, _ := decoder.Token()
			if names[name] {
				return true
			}
			names[name] = true
		}
		if hasTwice(decoder) {
			return true
		}
	}
	if _, isDelimiter := token.(json.Delim); isDelimiter {
		_, _ = decoder.Token() // the end of the object or list
	}
	return false
}

// parseObject keeps numbers as they are written.
func parseObject(content []byte) (map[string]interface{}, bool) {
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	var object map[string]interface{}
	if decoder.Decode(&object) != nil || object == nil {
		return nil, false
	}
	_, err := decoder.Token()
	return object, err == io.EOF
}

// integer returns a claim that must be an integer.
func integer(value interface{}) (int64, bool) {
	number, ok := value.(json.Number)
	if !ok {
		return 0, false
	}
	whole, err := number.Int64()
	return whole, err == nil
}
