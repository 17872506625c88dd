package rest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

const (
	mostAtOnce = 1000 // rows of a list that are in memory at a time, beside the text that is made of them
	mostRows   = 1000 // of a page, or as many as it has unless another limit is given
)

// bounded is a page's limit as it is kept: how much is in memory is not for callers to say. What is beyond is on the next page.
func (o *operation) bounded(limit int) int {
	if limit <= mostRows {
		return limit
	}
	most := mostRows
	for _, p := range o.body.properties {
		if n, err := strconv.Atoi(string(p.fallback)); p.name == "limit" && err == nil {
			most = max(most, n)
		}
	}
	return min(limit, most)
}

// rows are those of a page, as they are answered.
type rows struct {
	text []byte // JSON, with a comma between two
	last access.Position
	more bool // another page follows
}

// inParts reads a page that may be long.
func inParts[A, B any](page access.Page, read func(access.Page) ([]A, bool, error), at func(A) (time.Time, uuid.UUID), show func(A) B) (r rows, err error) {
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	for left := page.Limit; ; {
		list, more, err := read(access.Page{After: page.After, Limit: min(left, mostAtOnce)})
		if err != nil {
			return r, err
		}
		for _, one := range list {
			if text.Len() > 0 {
				text.WriteByte(',')
			}
			if err := out.Encode(show(one)); err != nil {
				return r, err
			}
			text.Truncate(text.Len() - 1) // the end of the line
		}
		if len(list) > 0 {
			r.last = lastOf(list, at)
			page.After = r.last
		}
		if left -= len(list); !more || left <= 0 {
			r.text, r.more = text.Bytes(), more
			return r, nil
		}
	}
}

// answer writes rows under each name, and what else there is.
func (r rows) answer(w http.ResponseWriter, rest any, names ...string) error {
	end, err := json.Marshal(rest)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", jsonUTF8)
	for i, name := range names {
		head := `],"` + name + `":[`
		if i == 0 {
			head = `{"` + name + `":[`
		}
		if _, err := w.Write([]byte(head)); err != nil {
			return err
		}
		if _, err := w.Write(r.text); err != nil {
			return err
		}
	}
	_, err = w.Write(append(append([]byte("],"), end[1:]...), '\n'))
	return err
}

// paged is what a page has beside its rows.
type paged struct {
	Ok         bool `json:"ok"`
	Pagination any  `json:"pagination"`
}
