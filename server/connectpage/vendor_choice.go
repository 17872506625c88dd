package connectpage

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
)

// searchThreshold is the number of vendors above which the page has a search field.
const searchThreshold = 8

// maxSearchLength is the maximum length of a search in bytes.
const maxSearchLength = 100

// searchParameter is the name of the query parameter with the search.
const searchParameter = "q"

// sortVendors sorts the vendors of which the workspace has accounts before others, then by name.
func sortVendors(vendors []Vendor, inUse map[account.Kind]bool) {
	rank := func(v Vendor) int {
		for kind := range inUse {
			if kind.Provider == v.Name || kind.Provider == "" && kind.Adapter == v.Adapter {
				return 0
			}
		}
		return 1
	}
	slices.SortStableFunc(vendors, func(a, b Vendor) int {
		return cmp.Or(
			cmp.Compare(rank(a), rank(b)),
			strings.Compare(simplify(a.DisplayName), simplify(b.DisplayName)),
		)
	})
}

// searchVendors returns the vendors whose name contains the text.
func searchVendors(vendors []Vendor, text string) (out []Vendor) {
	text = simplify(text)
	for _, v := range vendors {
		if strings.Contains(simplify(v.DisplayName), text) {
			out = append(out, v)
		}
	}
	return out
}

// simplify returns the text in lower case, without accents, spaces, and punctuation. assets/page.js does the same.
func simplify(text string) string {
	letters := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }
	chain := transform.Chain(norm.NFKD, runes.Remove(runes.Predicate(letters)))
	out, _, err := transform.String(chain, text)
	if err != nil {
		out = text
	}
	return strings.ToLower(out)
}
