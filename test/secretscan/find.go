package secretscan

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Find searches in for all secrets, plain and encoded, and describes the kinds it finds and where, without the secrets.
// It scans the text once, for any number of secrets.
func (l *Ledger) Find(in []byte) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string][]needle{}
	begins, lengths := map[[minLength]byte]bool{}, map[int]bool{}
	for secret := range l.secrets {
		for rank, f := range forms(secret, l.Random) {
			all[f.text] = append(all[f.text], needle{f, secret, rank})
			begins[[minLength]byte([]byte(f.text))], lengths[len(f.text)] = true, true
		}
	}
	sorted, best := slices.Sorted(maps.Keys(lengths)), map[string]hit{}
	for at := 0; at+minLength <= len(in); at++ {
		if !begins[[minLength]byte(in[at:])] {
			continue
		}
		for _, length := range sorted {
			if at+length > len(in) {
				break
			}
			for _, n := range all[string(in[at:at+length])] {
				if n.number && (continues(in, at-1) || continues(in, at+length)) {
					continue
				}
				if h, there := best[n.secret]; !there || n.rank < h.rank {
					best[n.secret] = hit{n, at}
				}
			}
		}
	}
	// the longest first, because one may be part of another
	var longest []string
	for secret, h := range best {
		longest = append(longest, secret, h.text)
	}
	slices.SortFunc(longest, func(a, b string) int { return len(b) - len(a) })
	for secret, h := range best {
		what := l.secrets[secret]
		end := h.at + len(h.text)
		before, behind := in[max(0, h.at-2*contextBytes):h.at], in[end:min(len(in), end+2*contextBytes)]
		for _, other := range longest { // hide other secrets around this one
			before = bytes.ReplaceAll(before, []byte(other), hidden)
			behind = bytes.ReplaceAll(behind, []byte(other), hidden)
		}
		before, behind = before[max(0, len(before)-contextBytes):], behind[:min(len(behind), contextBytes)]
		found = append(
			found,
			fmt.Sprintf("a %s of %d characters, %s: …%s<the %s>%s…", what, len(secret), h.name, before, what, behind),
		)
	}
	slices.Sort(found)
	return found
}

// contextBytes is the number of bytes shown before and after a secret.
const contextBytes = 80

var hidden = []byte("<another>")

// needle is a secret in one of its forms, ranked by how clear a finding is.
type needle struct {
	form
	secret string
	rank   int
}

// hit is the first position of a needle.
type hit struct {
	needle
	at int
}

// form is a spelling of a secret.
type form struct {
	name, text string
	// digits only: must not be part of a longer number
	number bool
}

func forms(secret string, random bool) []form {
	digits := strings.Trim(secret, "0123456789") == ""
	hexadecimal := hex.EncodeToString([]byte(secret))
	if digits && (len(secret) < 6 || random && secret[0] != '0') { // as a separate value only
		short := []form{
			{"in quotes", `"` + secret + `"`, false},
			{"in quotes", `'` + secret + `'`, false},
			{"in escaped quotes", `\"` + secret + `\"`, false},
			{"as bytes", `'\x` + hexadecimal + `'`, false},
		}
		for _, name := range []string{"code", "Code", "pin", "PIN"} {
			for _, between := range []string{"=", ":", ": ", " "} {
				short = append(short, form{"behind its name", name + between + secret, true})
			}
		}
		return short
	}
	return []form{
		{"plain", secret, digits},
		{"in hexadecimal", hexadecimal, false},
		{
			"in base64",
			base64.RawStdEncoding.EncodeToString([]byte(secret)),
			false,
		},
		{"in base64", base64.RawURLEncoding.EncodeToString([]byte(secret)), false},
	}
}

// continues reports whether the byte makes a number part of an identifier, a time, or a duration.
func continues(text []byte, at int) bool {
	if at < 0 || at >= len(text) {
		return false
	}
	c := text[at]
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '.' || c == '-' || c >= 0x80
}
