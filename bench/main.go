// Command bench measures the server against floors on the same machine in the same run, in turns, and prints
// ratios: absolute figures say more about the machine than about the program.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

func main() {
	part := flag.String("part", "api,webhooks", "what is measured: api, webhooks, lists")
	rows := flag.Int("rows", 1_000_000, "of each table whose list is measured")
	only := flag.String("list", "", "measure only the lists whose path contains this")
	rounds := flag.Int("rounds", 7, "how often each side is measured")
	length := flag.Duration("length", 2*time.Second, "of one measurement")
	clients := flag.Int("clients", 32, "connections that ask at once")
	profile := flag.String("cpuprofile", "", "write a CPU profile of everything to this file")
	flag.Parse()
	app.TuneMemory() // as the server does; the floor has it, too
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
		defer pprof.StopCPUProfile()
	}
	for _, p := range strings.Split(*part, ",") {
		var err error
		switch p {
		case "api":
			err = measureAPI(ctx, *rounds, *length, *clients)
		case "webhooks":
			err = measureWebhooks(ctx, *rounds, *length)
		case "lists":
			err = measureLists(ctx, *rounds, *rows, *only)
		default:
			err = fmt.Errorf("there is no part %q; there are api, webhooks and lists", p)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			pprof.StopCPUProfile()
			os.Exit(1)
		}
	}
}

// measureAPI measures each operation of the server against the least that chi and pgx need for the same.
func measureAPI(ctx context.Context, rounds int, length time.Duration, clients int) error {
	b, err := newBed(ctx)
	if err != nil {
		return err
	}
	defer b.close()
	create := b.ours("/webhooks/create", `{"url":"https://example.com/hook"}`)
	keyed := create
	keyed.keyed = true
	fmt.Printf("%d rounds of %s each in turns, %d connections, PostgreSQL with fsync\n\n", rounds, length, clients)
	for _, c := range []struct {
		name        string
		floor, ours target
	}{
		{"/devices/list (one device)", b.floor("/select", `{}`), b.ours("/devices/list", `{}`)},
		{"/webhooks/create", b.floor("/insert", `{"url":"https://example.com/hook"}`), create},
		{"the same, with a key, to without", create, keyed}, // Idempotency-Key
	} {
		result, err := compare(ctx, c.floor, c.ours, rounds, length, clients)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Printf("%-28s %s\n", c.name, result)
	}
	fmt.Println()
	return nil
}
