import type { ProofAnswer, ProofQuestion } from '../read-models/explanations.js';
import { answerFromHistory } from '../replay/answer-from-history.js';
import { ExplanationTelling } from './tell-explanation.js';

/** The thread that proves decisions. */
answerFromHistory<ProofQuestion, ProofAnswer>((question, registry) => new ExplanationTelling(question, registry));
