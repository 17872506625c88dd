package api

import (
	"fmt"
	"iter"
)

// Pages yields the records of a list operation, page by page. It calls fetch with the cursor of each page; the first
// cursor is "". A response without pagination, as some servers send, is the only page. A repeated cursor is an error:
// the missing records would be taken for deleted.
func Pages[T any](fetch func(cursor string) ([]T, Pagination, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		seen := map[string]bool{}
		for cursor := ""; ; {
			records, pagination, err := fetch(cursor)
			if err != nil {
				yield(none, err)
				return
			}
			for _, record := range records {
				if !yield(record, nil) {
					return
				}
			}
			if !pagination.HasNextPage || pagination.NextPageCursor == nil || *pagination.NextPageCursor == "" {
				return
			}
			cursor = *pagination.NextPageCursor
			if seen[cursor] {
				yield(
					none,
					fmt.Errorf(
						"the server repeats the page at cursor %q, so the list cannot be read to its end",
						cursor,
					),
				)
				return
			}
			seen[cursor] = true
		}
	}
}

// Collect returns all records of a sequence, or its first error.
func Collect[T any](records iter.Seq2[T, error]) ([]T, error) {
	var all []T
	for record, err := range records {
		if err != nil {
			return nil, err
		}
		all = append(all, record)
	}
	return all, nil
}
