package domain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Rules of custom metadata (docs.seam.co, custom metadata).
const (
	maxMetadataKeys  = 50
	maxMetadataKey   = 40  // characters
	maxMetadataValue = 500 // characters

	// MaxSessionMetadata is the maximum size of the metadata that a client session stores on a webview or a device, in
	// bytes of JSON.
	MaxSessionMetadata = 500
)

// CheckSessionMetadata fails with Invalid where a client session would store too much. It may shorten what others stored.
func CheckSessionMetadata(p Principal, old, data []byte) error {
	if p.Kind != EndUser || len(data) <= MaxSessionMetadata {
		return nil
	}
	var stored bytes.Buffer // the database adds spaces
	if json.Compact(&stored, old) == nil && len(data) <= stored.Len() {
		return nil
	}
	return Invalidf(
		"custom_metadata",
		"The metadata has %d bytes of JSON, and a client session may store %d. Store less, or use an API key",
		len(data),
		MaxSessionMetadata,
	)
}

// ApplyMetadata returns old with the changes. null and an empty text delete a key. It fails with Invalid,
// naming the key, where the result breaks a rule.
func ApplyMetadata(old []byte, change map[string]any) ([]byte, error) {
	if len(change) == 0 {
		return old, nil
	}
	data := map[string]any{}
	if err := json.Unmarshal(old, &data); err != nil {
		return nil, fmt.Errorf("read the metadata: %w", err)
	}
	for key, value := range change {
		if value == nil || value == "" {
			delete(data, key)
			continue
		}
		if n := utf8.RuneCountInString(key); n == 0 || n > maxMetadataKey || strings.Contains(key, ".") {
			return nil, Invalidf(
				"custom_metadata",
				"The key %.60q does not have 1 to %d characters without a dot",
				key,
				maxMetadataKey,
			)
		}
		if text, ok := value.(string); ok && utf8.RuneCountInString(text) > maxMetadataValue {
			return nil, Invalidf(
				"custom_metadata",
				"The value of %q has more than %d characters",
				key,
				maxMetadataValue,
			)
		}
		data[key] = value
	}
	if len(data) > maxMetadataKeys {
		return nil, Invalidf(
			"custom_metadata",
			"There would be %d keys, and at most %d are allowed. Delete some with null",
			len(data),
			maxMetadataKeys,
		)
	}
	return MustJSON(data), nil
}

// MetadataConditions returns what the metadata must contain, and the keys that must be absent: those of null
// and of an empty text, which delete a key. nil is no condition. It fails with Invalid for more keys than
// metadata can have.
func MetadataConditions(filter map[string]any) (has []byte, without []string, err error) {
	if len(filter) > maxMetadataKeys {
		return nil, nil, Invalidf(
			"custom_metadata_has",
			"It has %d keys, and metadata has at most %d. Use fewer",
			len(filter),
			maxMetadataKeys,
		)
	}
	with := map[string]any{}
	for key, value := range filter {
		if value == nil || value == "" {
			without = append(without, key)
		} else {
			with[key] = value
		}
	}
	if len(with) > 0 {
		has = MustJSON(with)
	}
	return has, without, nil
}

// ReadMetadata decodes stored metadata.
func ReadMetadata(stored []byte) map[string]any {
	if string(stored) == "{}" {
		return map[string]any{}
	}
	var data map[string]any
	_ = json.Unmarshal(stored, &data) // written by this package
	return data
}
