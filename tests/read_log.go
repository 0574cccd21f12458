// Command read_log reads a log of editions with the tools of Go's checksum database, which know nothing of ours.
//
//	read_log VERIFIER_KEY LOG [OLDER_CHECKPOINT ...]
//
// LOG is a folder with the files of /log/. It verifies the signature of the checkpoint, every entry, and that the
// log has only grown since each older checkpoint. If something is wrong, it says what and ends with status 1.
package main

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const height = 8

// A log is the folder with its files. It is the source of tiles, which tlog checks against the root.
type log string

func (l log) Height() int                     { return height }
func (l log) SaveTiles([]tlog.Tile, [][]byte) {}
func (l log) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	var all [][]byte
	for _, tile := range tiles {
		path := strings.TrimPrefix(tile.Path(), fmt.Sprintf("tile/%d/", height)) // C2SP leaves the height out
		content, err := l.read("tile/" + path)
		if err != nil {
			return nil, err
		}
		all = append(all, content)
	}
	return all, nil
}

func (l log) read(path string) ([]byte, error) {
	return os.ReadFile(filepath.Join(string(l), path))
}

// entries returns the entries in the bundles of a log of a size.
func (l log) entries(size int64) ([][]byte, error) {
	var all [][]byte
	for first := int64(0); first < size; first += 1 << height {
		tile := tlog.Tile{H: height, L: -1, N: first >> height, W: 1 << height}
		if size-first < 1<<height {
			tile.W = int(size - first)
		}
		path := strings.Replace(tile.Path(), fmt.Sprintf("tile/%d/data/", height), "tile/entries/", 1)
		bundle, err := l.read(path)
		if err != nil {
			return nil, err
		}
		for len(bundle) > 2 {
			end := 2 + int(binary.BigEndian.Uint16(bundle))
			if end > len(bundle) {
				break
			}
			all, bundle = append(all, bundle[2:end]), bundle[end:]
		}
		if len(bundle) > 0 || int64(len(all)) != first+int64(tile.W) {
			return nil, fmt.Errorf("%s: not a bundle of %d entries", path, tile.W)
		}
	}
	return all, nil
}

// checkpoint returns the size and the root in a note that the key signed.
func checkpoint(content []byte, key note.Verifier) (tree tlog.Tree, err error) {
	opened, err := note.Open(content, note.VerifierList(key))
	if err != nil {
		return tree, err
	}
	lines := strings.Split(opened.Text, "\n")
	if len(lines) < 4 || lines[0] != key.Name() {
		return tree, fmt.Errorf("not a checkpoint of %s", key.Name())
	}
	if tree.N, err = strconv.ParseInt(lines[1], 10, 64); err != nil {
		return tree, err
	}
	root, err := base64.StdEncoding.DecodeString(lines[2])
	if err == nil && copy(tree.Hash[:], root) != tlog.HashSize {
		err = fmt.Errorf("a root of %d bytes", len(root))
	}
	return tree, err
}

func check(key note.Verifier, place log, older []string) error {
	content, err := place.read("checkpoint")
	if err != nil {
		return err
	}
	tree, err := checkpoint(content, key)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	entries, err := place.entries(tree.N)
	if err != nil {
		return err
	}
	hashes := tlog.TileHashReader(tree, place)
	for n, entry := range entries {
		proof, err := tlog.ProveRecord(tree.N, int64(n), hashes)
		if err == nil {
			err = tlog.CheckRecord(proof, tree.N, tree.Hash, int64(n), tlog.RecordHash(entry))
		}
		if err != nil {
			return fmt.Errorf("entry %d: %w", n, err)
		}
	}
	trees := []tlog.Tree{tree}
	for _, path := range older {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		before, err := checkpoint(content, key)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		trees = append(trees, before)
	}
	sort.SliceStable(trees, func(i, j int) bool { return trees[i].N < trees[j].N })
	if last := trees[len(trees)-1]; last.N > tree.N {
		return fmt.Errorf("the log had %d entries and has %d", last.N, tree.N)
	}
	for i, before := range trees {
		for _, after := range trees[i+1:] {
			proof, err := tlog.ProveTree(after.N, before.N, hashes)
			if err == nil {
				err = tlog.CheckTree(proof, after.N, after.Hash, before.N, before.Hash)
			}
			if err != nil {
				return fmt.Errorf("from %d to %d entries: %w", before.N, after.N, err)
			}
		}
	}
	fmt.Printf("%d entries, %d checkpoints\n", tree.N, len(trees))
	return nil
}

func main() {
	key, err := note.NewVerifier(os.Args[1])
	if err == nil {
		err = check(key, log(os.Args[2]), os.Args[3:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
