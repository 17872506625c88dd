package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/abuse"
)

func init() { abuse.Main() } //nolint:gochecknoinits // this program may run as the attackers

// measureHostile attacks the server, and compares the healthy clients' requests with those in the calm before each
// attack.
func measureHostile(ctx context.Context, o options) (_ []figure, err error) {
	c, err := newCluster(ctx)
	if err != nil {
		return nil, err
	}
	defer c.close()
	dir := filepath.Join(c.dir, "hostile")
	if err := os.Mkdir(
		dir,
		0o755,
	); err != nil { //nolint:gosec // nothing of it is secret but the master key, which is made 0600
		return nil, err
	}
	program, err := abuse.Build(ctx, dir)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	neighbor, err := secondDatabase(ctx, c)
	if err != nil {
		return nil, err
	}
	fmt.Printf("each attack lasts %s, after the calm and the same attack on another server; the attackers have the "+
		"lowest priority\n\n%s\n", o.length, abuse.Header)
	rows, err := abuse.Run(ctx, abuse.Options{
		Program:   program,
		DSN:       c.DSN("postgres"),
		Neighbor:  neighbor,
		Dir:       dir,
		Window:    o.length,
		Compare:   true,
		Endpoints: 200,
		Only:      o.only,
		Log:       log,
		Out:       os.Stdout,
	})
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		for _, fault := range r.Faults() {
			err = errors.Join(err, errors.New(fault))
		}
		if r.Confined() {
			err = errors.Join(
				err,
				fmt.Errorf(
					"%s: the limit of open files leaves room for %d connections, of %d",
					r.Name,
					r.Room,
					r.Wanted,
				),
			)
		}
	}
	return nil, err
}

const neighborDatabase = "neighbor"

// secondDatabase creates another database in the server's cluster.
func secondDatabase(ctx context.Context, c *cluster) (dsn string, err error) {
	db, err := pgx.Connect(ctx, c.DSN("postgres"))
	if err != nil {
		return "", err
	}
	defer db.Close(ctx) //nolint:errcheck // the work is done
	_, err = db.Exec(ctx, "create database "+neighborDatabase)
	return c.DSN(neighborDatabase), err
}
