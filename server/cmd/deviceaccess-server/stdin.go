package main

import (
	"bufio"
	"context"
	"io"
	"os"
)

// stdin is standard input until ctx ends: whoever waits for it can be told to stop.
func stdin(ctx context.Context) io.Reader {
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, os.Stdin)
		w.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { w.CloseWithError(ctx.Err()) })
	return r
}

// answer reads the line that answers a question.
func answer(ctx context.Context) (string, error) {
	return bufio.NewReader(stdin(ctx)).ReadString('\n')
}
