package recording

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// redactor removes what may identify a person, an account, or a device, and what opens doors.
type redactor struct {
	// placeholders holds the placeholder of each identifier.
	placeholders map[string]string
	// taken holds all placeholders.
	taken map[string]bool
	// shift moves times.
	shift time.Duration
	// replaying means that identifiers of the recording stay, and that times become patterns. Two redactions of a
	// request are then the same.
	replaying bool
}

func newRedactor() *redactor {
	day := 24 * time.Hour
	return &redactor{
		placeholders: map[string]string{},
		taken:        map[string]bool{},
		shift:        7*day + rand.N(365*day),
	}
}

// value redacts a JSON value. key is the key that it has in its object, or that its array has.
func (r *redactor) value(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out[unused(r.key(k), out)] = r.value(k, v[k])
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = r.value(key, one)
		}
		return out
	case string:
		return r.text(key, v)
	case json.Number:
		return json.Number(r.number(key, v.String()))
	default: // a boolean, or null
		return v
	}
}

// unused returns a key that an object does not have.
func unused[V any](key string, in map[string]V) string {
	if _, used := in[key]; !used {
		return key
	}
	for n := 2; ; n++ {
		next := key + "~" + strconv.Itoa(n)
		if _, used := in[next]; !used {
			return next
		}
	}
}

// values redacts parameters of a URL or a form.
func (r *redactor) values(all url.Values) url.Values {
	out := url.Values{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		key := unused(r.key(name), out)
		for _, value := range all[name] {
			out[key] = append(out[key], r.text(name, value))
		}
	}
	return out
}

// fieldName matches keys that are names of fields, such as "lockId", "starts_at", and "line2".
var fieldName = regexp.MustCompile(`^[a-z][A-Za-z_]{0,38}[0-9]?$`)

// key redacts the key of an object. Some objects have identifiers or names as keys.
func (r *redactor) key(key string) string {
	if p, ok := r.known(key); ok {
		return p
	}
	if fieldName.MatchString(key) {
		return key
	}
	return pattern(key)
}

// known returns the placeholder of a known identifier.
func (r *redactor) known(text string) (string, bool) {
	if r.replaying && r.taken[text] {
		return text, true
	}
	p, ok := r.placeholders[text]
	return p, ok
}

// text redacts a string.
func (r *redactor) text(key, text string) string {
	if text == "" {
		return ""
	}
	if p, ok := r.known(text); ok {
		return p
	}
	if isIdentifier(key) {
		return r.placeholder(text, pattern(text))
	}
	if words[text] && !isPrivate(key) || isOutcome(key) && oneWord.MatchString(text) || key == ttlockFeatures {
		return text
	}
	if at := r.time(text); at != "" {
		return at
	}
	return pattern(text)
}

// ttlockFeatures is the key of TTLock's capabilities of a lock, a hexadecimal set of bits. Without them, a replay shows
// a lock that can do nothing.
const ttlockFeatures = "featureValue"

// smallest is the smallest integer that is redacted.
const smallest = 100

// number redacts a number.
func (r *redactor) number(key, text string) string {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && -smallest < n && n < smallest {
		return text
	}
	if p, ok := r.known(text); ok {
		return p
	}
	switch {
	case err == nil && isOutcome(key):
		return text
	case err == nil && n > 0 && isIdentifier(key):
		return r.placeholder(text, magnitude(text))
	case err == nil && !r.replaying && isTime(key) && n > 1e9 && n < 4e9:
		return strconv.FormatInt(n-int64(r.shift/time.Second), 10)
	case err == nil && !r.replaying && isTime(key) && n > 1e12 && n < 4e12:
		return strconv.FormatInt((n-r.shift.Milliseconds())/1000*1000, 10)
	}
	return magnitude(text)
}

// placeholder returns the placeholder of an identifier. It looks like base, and is different for each identifier.
func (r *redactor) placeholder(original, base string) string {
	if r.replaying { // the recording does not have it
		return base
	}
	for n := len(r.taken) + 1; ; n++ {
		p := numbered(base, n)
		if !r.taken[p] {
			r.placeholders[original], r.taken[p] = p, true
			return p
		}
	}
}

// numbered replaces the last letters and digits of text by a number. A number that does not fit is appended.
func numbered(text string, n int) string {
	digits := strconv.Itoa(n)
	out := []byte(text)
	first := strings.IndexFunc(text, isAlphanumeric)
	for i := len(out) - 1; i > first && digits != ""; i-- {
		if isAlphanumeric(rune(out[i])) {
			out[i] = digits[len(digits)-1]
			digits = digits[:len(digits)-1]
		}
	}
	return string(out) + digits
}

func isAlphanumeric(c rune) bool { return c == 'a' || c == 'A' || '0' <= c && c <= '9' }

var version = regexp.MustCompile(`^v[0-9]{1,3}(\.[0-9]{1,3})*$`)

// path redacts a path.
func (r *redactor) path(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		text, err := url.PathUnescape(part)
		if err != nil {
			text = part
		}
		if p, ok := r.known(text); ok {
			parts[i] = p
		} else if !nouns[text] && !version.MatchString(text) {
			parts[i] = pattern(text)
		}
	}
	return strings.Join(parts, "/")
}

// pattern replaces the letters and digits of a string. It keeps the characters that structure one.
func pattern(text string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case unicode.IsUpper(c):
			return 'A'
		case unicode.IsLetter(c):
			return 'a'
		case unicode.IsDigit(c):
			return '0'
		case strings.ContainsRune("-_.:/@+ {}[],\"<>", c):
			return c
		}
		return '#'
	}, text)
}

// magnitude replaces the digits of a number: the first that is not 0 becomes 1, and the others 0.
func magnitude(text string) string {
	mantissa, exponent := text, ""
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa, exponent = text[:i], text[i:]
	}
	leading := true
	return strings.Map(func(c rune) rune {
		switch {
		case c < '0' || c > '9':
			return c
		case leading && c != '0':
			leading = false
			return '1'
		}
		return '0'
	}, mantissa) + exponent
}

// timestamp matches a day, a separator, a time of day, a fraction, and a zone.
var timestamp = regexp.MustCompile(
	`^(\d{4}-\d{2}-\d{2})([T ])(\d{2}:\d{2}(?::\d{2})?)(\.\d+)?(Z|[+-]\d{2}:?\d{2})?$`,
)

// time moves a timestamp, or returns "" if text is none. It keeps the format.
func (r *redactor) time(text string) string {
	m := timestamp.FindStringSubmatch(text)
	if m == nil || r.replaying {
		return ""
	}
	layout := "2006-01-02T15:04:05"[:len("2006-01-02T")+len(m[3])]
	at, err := time.Parse(layout, m[1]+"T"+m[3])
	if err != nil {
		return ""
	}
	return strings.Replace(at.Add(-r.shift).Format(layout), "T", m[2], 1) + magnitude(m[4]) + m[5]
}

// lastWord returns the last word of a key in lower case: "id" of "lock_id", "lockId", and "lockID".
func lastWord(key string) string {
	words := wordsOf(key)
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

var wordStart = regexp.MustCompile(`[A-Z]+[a-z]*|[a-z]+`)

func wordsOf(key string) []string {
	found := wordStart.FindAllString(key, -1)
	for i := range found {
		found[i] = strings.ToLower(found[i])
	}
	return found
}

// isIdentifier reports whether the values of a key are identifiers.
func isIdentifier(key string) bool { return identifiers[lastWord(key)] }

// isTime reports whether a number with the key is a time.
func isTime(key string) bool {
	return slices.ContainsFunc(wordsOf(key), func(w string) bool { return times[w] })
}

// oneWord matches the name of an outcome, such as "invalid_grant" and "LOCK_OFFLINE".
var oneWord = regexp.MustCompile(`^[A-Za-z][A-Za-z_]{1,39}$`)

// isOutcome reports whether a key says how a call ended, such as "errorCode" and "status".
func isOutcome(key string) bool { return outcomes[strings.Join(wordsOf(key), "")] }

// isPrivate reports whether a key says that its value is a name or a secret.
func isPrivate(key string) bool {
	return slices.ContainsFunc(wordsOf(key), func(w string) bool { return private[w] })
}
