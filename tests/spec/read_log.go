// Reads the log of editions with the packages of Go's checksum database, which are where tiles come from:
//
//	read_log BASE_URL VERIFIER_KEY < PROOF.json
//
// It checks the note, every entry against the tiles, every earlier size against the newest, and the paths
// of a proof of ours. It prints the number of entries.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type site string

func (s site) get(path string) []byte {
	answer, err := http.Get(string(s) + "/log/" + path)
	check(err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	check(err)
	if answer.StatusCode != 200 {
		log.Fatalf("%s: %s", path, answer.Status)
	}
	return body
}

func (s site) Height() int { return 8 }

// C2SP leaves the height out of the path.
func (s site) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	var content [][]byte
	for _, tile := range tiles {
		content = append(content, s.get(strings.Replace(tile.Path(), "tile/8/", "tile/", 1)))
	}
	return content, nil
}

func (s site) SaveTiles([]tlog.Tile, [][]byte) {}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func hash(text string) tlog.Hash {
	parsed, err := tlog.ParseHash(text)
	check(err)
	return parsed
}

func hashes(texts []string) (all []tlog.Hash) {
	for _, text := range texts {
		all = append(all, hash(text))
	}
	return all
}

func main() {
	from := site(os.Args[1])
	verifier, err := note.NewVerifier(os.Args[2])
	check(err)
	opened, err := note.Open(from.get("checkpoint"), note.VerifierList(verifier))
	check(err)
	var origin, root string
	var size int64
	_, err = fmt.Sscanf(opened.Text, "%s\n%d\n%s\n", &origin, &size, &root)
	check(err)
	if origin != verifier.Name() {
		log.Fatalf("origin %q", origin)
	}
	tree := tlog.Tree{N: size, Hash: hash(root)}
	reader := tlog.TileHashReader(tree, from)
	var leaves []tlog.Hash
	for first := int64(0); first < size; first += 256 {
		tile := tlog.Tile{H: 8, L: 0, N: first / 256, W: 256}
		if size-first < 256 {
			tile.W = int(size - first)
		}
		bundle := from.get(strings.Replace(tile.Path(), "tile/8/0/", "tile/entries/", 1))
		for len(bundle) > 0 {
			end := 2 + int(bundle[0])<<8 + int(bundle[1])
			leaves = append(leaves, tlog.RecordHash(bundle[2:end]))
			bundle = bundle[end:]
		}
	}
	if int64(len(leaves)) != size {
		log.Fatalf("%d entries of %d", len(leaves), size)
	}
	for index := range leaves {
		proof, err := tlog.ProveRecord(size, int64(index), reader)
		check(err)
		check(tlog.CheckRecord(proof, size, tree.Hash, int64(index), leaves[index]))
		older, err := tlog.TreeHash(int64(index+1), reader)
		check(err)
		grown, err := tlog.ProveTree(size, int64(index+1), reader)
		check(err)
		check(tlog.CheckTree(grown, size, tree.Hash, int64(index+1), older))
	}
	var ours struct {
		Entry       []byte   `json:"entry"`
		Index       int64    `json:"entry_index"`
		Path        []string `json:"entry_path"`
		Consistency []string `json:"consistency_path"`
		Since       int64    `json:"since"`
	}
	check(json.NewDecoder(os.Stdin).Decode(&ours))
	check(tlog.CheckRecord(hashes(ours.Path), size, tree.Hash, ours.Index, tlog.RecordHash(ours.Entry)))
	older, err := tlog.TreeHash(ours.Since, reader)
	check(err)
	check(tlog.CheckTree(hashes(ours.Consistency), size, tree.Hash, ours.Since, older))
	fmt.Println(size)
}
